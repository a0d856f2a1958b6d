#pragma once
/// The flags of `generate`: a prompt and the number of new tokens.
#include "base/temporary_folder.h"
#include "cli/planning.h"
#include "pipeline/run/generation.h"
#include "pipeline/run/run_request.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::cli {

class GenerationFlags {
 public:
  struct Options {
    CLI::Option *tokens, *prompt, *ignoreEndToken;
  };
  /// `tokensName`: "--tokens", or "--generate" as `run` calls it.
  Options addTo(CLI::App& command, const char* tokensName);
  bool isAsked() const { return m_tokens > 0; }
  /// BadUsage for a prompt without a number of tokens.
  Result<void> check() const;
  /// Reads the prompt from --prompt, else from `input`, else from `expect`, and writes it to a file for the ranks.
  Result<void> readPrompt(const std::string& input, const std::string& expect);
  /// The file that the prompt was written to.
  std::string inputFile() const { return (*m_folder / kPromptFile).string(); }
  /// Sets the flags of a plan for the prompt.
  void setShape(PlanFlags& flags) const;
  /// A plan's model with the prompt as its input.
  plan::ModelInfo modelFor(const plan::ModelInfo& model) const { return pipeline::ofPrompt(model, m_prompt, m_tokens); }
  /// Adds to a request for a plan of the prompt: the number of tokens, the end tokens, and the plan of a decode step.
  Result<void> complete(pipeline::RunRequest& request, const Progress& progress) const;

 private:
  static constexpr std::string_view kPromptFile = "prompt.safetensors";
  std::string m_text;
  std::int64_t m_tokens = 0;
  bool m_ignoresEndToken = false;
  pipeline::TokenRows m_prompt;
  std::optional<TemporaryFolder> m_folder;
};

}  // namespace cleave::cli
