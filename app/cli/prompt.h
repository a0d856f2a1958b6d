#pragma once
/// The prompt of `generate`, in a file for the ranks.
#include "base/temporary_folder.h"
#include "pipeline/run/generation.h"
#include "pipeline/run/run_request.h"

namespace cleave::cli {

class Prompt {
 public:
  /// From --prompt, else from `input`, else from `expect`. BadUsage without any of them.
  static Result<Prompt> read(const spec::RunSpec& run);
  /// Makes the input that of the prompt.
  void setShape(spec::InputSpec& input) const;
  /// A plan's model with the prompt as its input.
  plan::ModelInfo modelFor(const plan::ModelInfo& model) const;
  /// Adds to a request for a plan of the prompt: its file, the end tokens, and the plan of a decode step.
  Result<void> complete(pipeline::RunRequest& request, const Progress& progress) const;

 private:
  Prompt(TemporaryFolder folder, pipeline::TokenRows rows, std::int64_t newTokens)
      : m_folder(std::move(folder)), m_rows(std::move(rows)), m_newTokens(newTokens) {}
  fs::path file() const { return m_folder / "prompt.safetensors"; }
  TemporaryFolder m_folder;
  pipeline::TokenRows m_rows;
  std::int64_t m_newTokens;
};

}  // namespace cleave::cli
