#include "spec/input/input_spec.h"

#include <fmt/format.h>

namespace cleave::spec {
namespace {

constexpr std::int64_t kMostBatch = 1 << 20;

Result<void> checkCache(const InputSpec& input, std::int64_t sequence) {
  const bool isStep = input.cacheUse == graph::CacheUse::Reads;
  if (input.loss || input.mask || input.tokenTypes)
    return fail(ErrorCode::BadUsage, "generation does not support a loss, a mask or token types; switch them off");
  if (isStep && sequence != 1)
    return fail(ErrorCode::BadUsage, "sequence length is {}: a decode step has one token", sequence);
  if (input.cachePositions >= sequence && input.cachePositions <= kMostPositions) return {};
  return fail(ErrorCode::BadUsage, "the cache has {} positions: expected a number from {} (the sequence) to {}",
              input.cachePositions, sequence, kMostPositions);
}

}  // namespace

Result<void> check(const InputSpec& input) {
  const std::int64_t batch = input.batch.value_or(1), sequence = input.sequence.value_or(kDefaultSequence);
  if (batch < 1 || batch > kMostBatch) {
    return fail(ErrorCode::BadUsage, "batch is {}: expected a number from 1 to {}", batch, kMostBatch);
  }
  if (sequence < 1 || sequence > kMostPositions) {
    return fail(ErrorCode::BadUsage, "sequence length is {}: expected a number from 1 to {}", sequence, kMostPositions);
  }
  if (input.logitsToKeep < 0)
    return fail(ErrorCode::BadUsage, "logits-to-keep is {}: expected 0 (all positions) or more", input.logitsToKeep);
  if (input.loss && input.logitsToKeep != 0) {
    return fail(ErrorCode::BadUsage,
                "logits-to-keep is {}: the loss needs the logits of all positions; switch the loss off",
                input.logitsToKeep);
  }
  if (input.loss && sequence < 2) {
    return fail(
        ErrorCode::BadUsage,
        "sequence length is 1: the loss compares each position with the next; use 2 or more, or switch the loss off");
  }
  if (input.cacheUse != graph::CacheUse::None) CLEAVE_TRY_VOID(checkCache(input, sequence));
  if (input.dtype && !graph::isFloatingPoint(*input.dtype)) {
    return fail(ErrorCode::BadUsage, "dtype is {}: expected a floating point type", graph::toText(*input.dtype));
  }
  return {};
}

}  // namespace cleave::spec
