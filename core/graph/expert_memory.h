#pragma once
// clang-format off
/// What split or whole experts (`cleave::moe_experts`, operators.h) hold beside their operands and result, in bytes.
/// One expert works at a time (libtorch/rank/experts.cpp), on the places where tokens have chosen it; tokens are taken
/// to spread evenly.
///
/// Elements of one place, with h hidden and f features of this rank's part:
///     forward    copy of the token h, gate and up 2f, the activated gate f, their product f, result h, weighed result
///                h: at once at most max(h + 2f, 2f + f + f + h, 2h)
///     kept       when a gradient is wanted, all of them, and the share: 4f + 3h + 1
///     backward   beside what is kept, of which it frees what it has passed: gradients of the weighed result, of the
///                result and their product 3h, or of the product, gate and up 3f: at most max(2h, 2f - 2h)
/// With clamped_swiglu gate and up are copied out of turn, f each, and there are the sigmoid f, its product with the
/// gate f and the product f:
///     forward    max(h + 2f, 2f + f + f + f, f + h, 2h)
///     kept       7f + 3h + 1
///     backward   at most max(2h, 2f - 2h)
/// and the place itself, two 64-bit numbers. Gradients of weights are made where they stay (tst_expert_memory).
// clang-format on
#include <cstdint>

namespace cleave::graph {

struct ExpertMemory {
  std::int64_t hidden = 0, features = 0;
  std::int32_t itemSize = 1;
  bool isClamped = false;  ///< clamped_swiglu

  /// The fullest moment of a forward pass that keeps nothing.
  std::int64_t forward(std::int64_t places) const;
  std::int64_t kept(std::int64_t places) const;
  /// The fullest moment of the backward pass, beyond what is kept.
  std::int64_t backward(std::int64_t places) const;
};

/// Of an expert among `experts`; rounded up.
std::int64_t placesOfOne(std::int64_t places, std::int64_t experts);

}  // namespace cleave::graph
