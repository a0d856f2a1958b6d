#pragma once
/// Rows of token ids: a prompt, or a prompt with the tokens that a run generated.
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// Rows of token ids with one length.
struct TokenRows {
  std::int64_t rows = 0, length = 0;
  std::vector<std::int64_t> ids;  ///< row-major
  std::int64_t at(std::int64_t row, std::int64_t column) const {
    return ids[static_cast<std::size_t>(row * length + column)];
  }
};

/// "1,2,3;4,5,6": ids of a row separated by commas, rows by semicolons. BadUsage says what is wrong.
Result<TokenRows> parsePrompt(const std::string& text);
/// The tensor `prompt` of a safetensors file; without it, `input_ids`. BadInput for another shape, a negative number,
/// or a mask that hides a part of it.
Result<TokenRows> readPrompt(const std::filesystem::path& file);
/// The tensor `tokens` of a safetensors file: the prompt and the tokens after it. BadInput if it is missing.
Result<TokenRows> readTokens(const std::filesystem::path& file);
/// Writes the prompt as `input_ids`, which ranks read.
Result<void> writePrompt(const TokenRows& prompt, const std::filesystem::path& file);

}  // namespace cleave::pipeline
