#include "cli/generation_flags.h"

#include <CLI/CLI.hpp>

namespace cleave::cli {

GenerationFlags::Options GenerationFlags::addTo(CLI::App& command, const char* tokensName) {
  CLI::Option* prompt =
      command.add_option("--prompt", m_text,
                         "Token ids: commas between ids, semicolons between rows of one length, such as 1,2,3;4,5,6 "
                         "(default: `prompt` or input_ids of --input, or of --expect)");
  CLI::Option* tokens =
      command.add_option(tokensName, m_tokens, "Generate N tokens with greedy decoding and a sharded KV cache")
          ->check(CLI::Range(std::int64_t{1}, program::kMostNewTokens));
  CLI::Option* ignoreEndToken =
      command.add_flag("--ignore-end-token", m_ignoresEndToken, "Do not stop a row at the model's end tokens");
  return {tokens, prompt, ignoreEndToken};
}

Result<void> GenerationFlags::check() const {
  if (isAsked() || (m_text.empty() && !m_ignoresEndToken)) return {};
  return fail(ErrorCode::BadUsage, "{} is a flag of cleave-cli generate: leave it out, or generate.",
              m_text.empty() ? "--ignore-end-token" : "--prompt");
}

Result<void> GenerationFlags::readPrompt(const std::string& input, const std::string& expect) {
  if (!m_text.empty() && !input.empty())
    return fail(ErrorCode::BadUsage, "--prompt and --input both give a prompt: leave one out.");
  if (m_text.empty() && input.empty() && expect.empty())
    return fail(ErrorCode::BadUsage,
                "Generation needs a prompt: give token ids with --prompt, or a file with --input.");
  CLEAVE_TRY(m_prompt,
             m_text.empty() ? pipeline::readPrompt(input.empty() ? expect : input) : pipeline::parsePrompt(m_text));
  CLEAVE_TRY(m_folder, TemporaryFolder::make("cleave-prompt"));
  return pipeline::writePrompt(m_prompt, inputFile());
}

void GenerationFlags::setShape(PlanFlags& flags) const {
  const plan::ModelInfo model = modelFor({});
  flags.batch = model.batch;
  flags.sequence = model.sequence;
  flags.loss = "off";
  flags.logitsToKeep = model.logitsToKeep;
  flags.cacheUse = model.cacheUse;
  flags.cachePositions = model.cachePositions;
}

Result<void> GenerationFlags::complete(pipeline::RunRequest& request, const Progress& progress) const {
  CLEAVE_TRY_VOID(pipeline::checkPrompt(*request.plan, m_prompt));
  CLEAVE_TRY(request.generation, pipeline::generationOf(request.plan->model, m_tokens));
  if (m_ignoresEndToken) request.generation.endTokens.clear();
  CLEAVE_TRY(request.step, pipeline::planStep(*request.plan, progress));
  request.input = inputFile();
  return {};
}

}  // namespace cleave::cli
