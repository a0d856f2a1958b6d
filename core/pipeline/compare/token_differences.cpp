#include "pipeline/compare/token_differences.h"

#include "base/quantities.h"

#include <algorithm>
#include <cmath>

namespace cleave::pipeline {

Result<std::vector<std::int64_t>> firstDifferences(const fs::path& one, const fs::path& other) {
  CLEAVE_TRY(const TokenRows left, readTokens(one));
  CLEAVE_TRY(const TokenRows right, readTokens(other));
  std::vector<std::int64_t> firsts;
  for (std::int64_t row = 0; row < std::min(left.rows, right.rows); ++row) {
    std::int64_t i = 0;
    while (i < std::min(left.length, right.length) && left.at(row, i) == right.at(row, i)) ++i;
    firsts.push_back(i);
  }
  return firsts;
}

Result<OutputDifference> compareTokens(const fs::path& actualFile, const fs::path& expectedFile,
                                       std::span<const std::int64_t> undecidedFrom, std::string& first) {
  CLEAVE_TRY(const TokenRows actual, readTokens(actualFile));
  CLEAVE_TRY(const TokenRows expected, readTokens(expectedFile));
  if (actual.rows != expected.rows) {
    return fail(ErrorCode::BadInput, "{} has tokens of {}, but the run generates {}.", expectedFile.string(),
                counted(expected.rows, "row"), actual.rows);
  }
  OutputDifference difference;
  difference.name = "tokens";
  for (std::int64_t row = 0; row < actual.rows; ++row) {
    for (std::int64_t i = 0; i < std::max(actual.length, expected.length); ++i) {
      const bool isMissing = i >= actual.length, isMore = i >= expected.length;
      if (!isMissing && !isMore && actual.at(row, i) == expected.at(row, i)) continue;
      if (row < std::ssize(undecidedFrom) && i >= undecidedFrom[static_cast<std::size_t>(row)]) {
        ++difference.undetermined;
        continue;
      }
      if (!isMissing && !isMore) {
        const auto apart = static_cast<double>(std::abs(actual.at(row, i) - expected.at(row, i)));
        difference.maxAbs = std::max(difference.maxAbs, apart);
      }
      if (difference.outside++ > 0) continue;
      first = isMissing ? fmt::format("row {} ends before token {}, which should be {}", row, i, expected.at(row, i))
              : isMore
                  ? fmt::format("row {} has an extra token {}, which is {}", row, i, actual.at(row, i))
                  : fmt::format("token {} of row {} is {}, not {}", i, row, actual.at(row, i), expected.at(row, i));
    }
  }
  if (difference.outside > 0) difference.maxRel = difference.ofTolerance = HUGE_VAL;
  return difference;
}

Result<void> checkExpectedTokens(const TokenRows& prompt, const fs::path& file) {
  CLEAVE_TRY(const TokenRows expected, readTokens(file));
  bool isSame = expected.rows == prompt.rows && expected.length >= prompt.length;
  for (std::int64_t row = 0; isSame && row < prompt.rows; ++row) {
    for (std::int64_t i = 0; i < prompt.length; ++i) isSame = isSame && expected.at(row, i) == prompt.at(row, i);
  }
  if (isSame) return {};
  return fail(ErrorCode::BadInput,
              "{}: tokens does not begin with the prompt of this run. Use a file with the tokens after this prompt.",
              file.string());
}

}  // namespace cleave::pipeline
