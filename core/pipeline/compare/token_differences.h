#pragma once
/// Compares generated tokens.
#include "base/result.h"
#include "pipeline/compare/output_difference.h"
#include "pipeline/compare/token_rows.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// By row: the first position at which two files of tokens differ; the length of the shorter one if they do not differ.
Result<std::vector<std::int64_t>> firstDifferences(const std::filesystem::path& one,
                                                   const std::filesystem::path& other);
/// Compares token by token, without a tolerance. `undecidedFrom`: by row, the position from which rounding alone
/// changes the tokens (the ruler of rounding.h); a difference from there on is undetermined. `first`: see
/// GenerationReport::firstDifference.
Result<OutputDifference> compareTokens(const std::filesystem::path& actual, const std::filesystem::path& expected,
                                       std::span<const std::int64_t> undecidedFrom, std::string& first);
/// BadInput if `expected` has no tokens, or tokens after another prompt.
Result<void> checkExpectedTokens(const TokenRows& prompt, const std::filesystem::path& expected);

}  // namespace cleave::pipeline
