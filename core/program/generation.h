#pragma once
/// Settings of generation, from the user and for the ranks.
#include "base/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::program {

inline constexpr std::int64_t kMostNewTokens = 1'000'000;

/// Greedy decoding, like transformers' `generate(do_sample=False)`: the lowest token of equal logits wins.
struct Generation {
  std::int64_t tokens = 0;              ///< maximum number of tokens after each row of the prompt; 0: no generation
  std::vector<std::int64_t> endTokens;  ///< a row ends at any of these tokens, and the run ends when all rows have
                                        ///< ended
  std::int64_t paddingToken = 0;        ///< token that fills ended rows
  bool isAsked() const { return tokens > 0; }
  bool operator==(const Generation&) const = default;
};

/// BadUsage names the flag, its value and its range.
Result<void> check(const Generation& generation);

}  // namespace cleave::program
