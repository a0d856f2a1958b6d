#pragma once
/// How a run generates: what a user asks for, what a rank is told.
#include "base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::program {

inline constexpr std::int64_t kMostNewTokens = 1'000'000;

/// Greedy, as transformers' `generate(do_sample=False)`: of equal logits the lowest token wins.
struct Generation {
  std::int64_t tokens = 0;              ///< behind each row of the prompt, at most; 0: nothing is generated
  std::vector<std::int64_t> endTokens;  ///< a row ends behind any of these, and the run where all rows have ended
  std::int64_t paddingToken = 0;        ///< what a row that has ended is filled up with
  bool isAsked() const { return tokens > 0; }
};

/// BadUsage names the flag, its value and its range.
Result<void> check(const Generation& generation);
/// The flags of cleave-rank that ask for it; empty where it is not asked for.
std::vector<std::string> arguments(const Generation& generation);

}  // namespace cleave::program
