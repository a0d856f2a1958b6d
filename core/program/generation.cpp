#include "program/generation.h"

#include <algorithm>

namespace cleave::program {

Result<void> check(const Generation& generation) {
  if (generation.tokens < 0 || generation.tokens > kMostNewTokens) {
    return fail(ErrorCode::BadUsage, "The number of new tokens is {}; it must be in 1..{}.", generation.tokens,
                kMostNewTokens);
  }
  const auto negative = std::find_if(generation.endTokens.begin(), generation.endTokens.end(),
                                     [](std::int64_t token) { return token < 0; });
  if (negative != generation.endTokens.end())
    return fail(ErrorCode::BadUsage, "--end-token is {}; a token is a number from 0 on.", *negative);
  if (generation.paddingToken < 0) {
    return fail(ErrorCode::BadUsage, "--padding-token is {}; a token is a number from 0 on.", generation.paddingToken);
  }
  return {};
}

}  // namespace cleave::program
