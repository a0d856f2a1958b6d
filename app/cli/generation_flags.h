#pragma once
/// The flags of `run` that generate tokens: a prompt, and how many follow it.
#include "base/temporary_folder.h"
#include "cli/planning.h"
#include "pipeline/generation.h"
#include "pipeline/run.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::cli {

class GenerationFlags {
 public:
  void addTo(CLI::App& command);
  bool isAsked() const { return m_tokens > 0; }
  /// BadUsage for flags that mean nothing without another, and for the first of `others` that is given: no run has
  /// both.
  Result<void> check(const std::vector<std::pair<const char*, bool>>& others) const;
  /// Takes the prompt from --prompt, or else from `input`, or else from `expect`, and has it written where ranks read
  /// it.
  Result<void> takePrompt(const std::string& input, const std::string& expect);
  /// The file that the prompt was written to.
  std::string inputFile() const { return (*m_folder / kPromptFile).string(); }
  /// The flags of a plan of the prompt.
  void setShape(PlanFlags& flags) const;
  /// The model of a plan with the prompt for its inputs.
  plan::ModelInfo modelFor(const plan::ModelInfo& model) const { return pipeline::ofPrompt(model, m_prompt, m_tokens); }
  /// What is generated with a plan of the prompt: the plan of a step behind it, and when a row ends.
  Result<void> complete(pipeline::RunRequest& request, const Progress& progress) const;

 private:
  static constexpr std::string_view kPromptFile = "prompt.safetensors";
  std::string m_text;
  std::int64_t m_tokens = 0;
  bool m_goesOn = false;  ///< behind the model's end tokens
  pipeline::TokenRows m_prompt;
  std::optional<TemporaryFolder> m_folder;
};

}  // namespace cleave::cli
