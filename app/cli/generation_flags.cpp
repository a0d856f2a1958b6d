#include "cli/generation_flags.h"

#include <CLI/CLI.hpp>

namespace cleave::cli {

void GenerationFlags::addTo(CLI::App& command) {
  command.add_option("--prompt", m_text,
                     "With --generate: token ids separated by commas, rows of one length by semicolons, such as "
                     "1,2,3;4,5,6; without it the prompt is `prompt` or input_ids of --input, or of --expect");
  command
      .add_option(
          "--generate", m_tokens,
          "Generate so many tokens behind the prompt, each the likeliest, with a cache of keys and values that is "
          "split as the model is")
      ->check(CLI::Range(std::int64_t{1}, program::kMostNewTokens));
  command.add_flag("--ignore-end-token", m_goesOn, "With --generate: go on behind the model's end tokens");
}

Result<void> GenerationFlags::check(const std::vector<std::pair<const char*, bool>>& others) const {
  if (!isAsked()) {
    if (m_text.empty() && !m_goesOn) return {};
    return fail(ErrorCode::BadUsage, "{} is for generating: say with --generate how many tokens.",
                m_text.empty() ? "--ignore-end-token" : "--prompt");
  }
  for (const auto& [flag, isGiven] : others) {
    if (isGiven) return fail(ErrorCode::BadUsage, "--generate and {} exclude each other: leave one out.", flag);
  }
  return {};
}

Result<void> GenerationFlags::takePrompt(const std::string& input, const std::string& expect) {
  if (!m_text.empty() && !input.empty())
    return fail(ErrorCode::BadUsage, "--prompt and --input both give a prompt: leave one out.");
  if (m_text.empty() && input.empty() && expect.empty()) {
    return fail(ErrorCode::BadUsage,
                "--generate needs a prompt: give token ids with --prompt, or a file of them with --input.");
  }
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
  if (m_goesOn) request.generation.endTokens.clear();
  CLEAVE_TRY(request.step, pipeline::planStep(*request.plan, progress));
  request.input = inputFile();
  return {};
}

}  // namespace cleave::cli
