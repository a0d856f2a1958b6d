#include "cli/prompt.h"

namespace cleave::cli {

Result<Prompt> Prompt::read(const spec::RunSpec& run) {
  if (!run.prompt.empty() && run.input)
    return fail(ErrorCode::BadUsage, "--prompt and --input both give a prompt: leave one out.");
  if (run.prompt.empty() && !run.input && !run.expect)
    return fail(ErrorCode::BadUsage,
                "Generation needs a prompt: give token ids with --prompt, or a file with --input.");
  CLEAVE_TRY(pipeline::TokenRows rows, run.prompt.empty() ? pipeline::readPrompt(run.input ? *run.input : *run.expect)
                                                          : pipeline::parsePrompt(run.prompt));
  CLEAVE_TRY(TemporaryFolder folder, TemporaryFolder::make("cleave-prompt"));
  Prompt prompt(std::move(folder), std::move(rows), run.generation.tokens);
  CLEAVE_TRY_VOID(pipeline::writePrompt(prompt.m_rows, prompt.file()));
  return prompt;
}

void Prompt::setShape(spec::InputSpec& input) const {
  plan::ModelInfo model;
  model.input = input;
  input = modelFor(model).input;
}

plan::ModelInfo Prompt::modelFor(const plan::ModelInfo& model) const {
  return pipeline::ofPrompt(model, m_rows, m_newTokens);
}

Result<void> Prompt::complete(pipeline::RunRequest& request, const Progress& progress) const {
  CLEAVE_TRY_VOID(pipeline::checkPrompt(*request.plan, m_rows));
  CLEAVE_TRY(request.generation, pipeline::generationOf(request.plan->model, m_newTokens));
  if (request.ignoresEndToken) request.generation.endTokens.clear();
  CLEAVE_TRY(request.step, pipeline::planStep(*request.plan, progress));
  request.input = file();
  return {};
}

}  // namespace cleave::cli
