#pragma once
// clang-format off
/// Memory in bytes of experts (`cleave::moe_experts`, operators.h), split or not, beside their operands and result. One
/// expert runs at a time (libtorch/bridge/experts.cpp), on the places where tokens chose it. The formulas assume that
/// tokens spread evenly.
///
/// Elements of one place, with h hidden and f features of this rank's part:
///     forward    copy of the token h, gate and up 2f, the activated gate f, their product f, result h, weighed result
///                h: at once at most max(h + 2f, 2f + f + f + h, 2h)
///     kept       with a gradient: all of these, and the share: 4f + 3h + 1
///     backward   beside the kept elements, which it frees one by one: gradients of the weighed result, of the result
///                and their product 3h, or of the product, gate and up 3f: at most max(2h, 2f - 2h)
/// With clamped_swiglu gate and up are copied from alternating columns, f each. Added are the sigmoid f, its product
/// with the gate f and the product f:
///     forward    max(h + 2f, 2f + f + f + f, f + h, 2h)
///     kept       7f + 3h + 1
///     backward   at most max(2h, 2f - 2h)
/// and two 64-bit numbers for the place itself. Gradients of weights are computed in place (tst_expert_memory).
// clang-format on
#include <cstdint>

namespace cleave::graph {

struct ExpertMemory {
  std::int64_t hidden = 0, features = 0;
  std::int32_t itemSize = 1;
  bool isClamped = false;  ///< clamped_swiglu

  /// Peak memory of a forward pass without saved values.
  std::int64_t forward(std::int64_t places) const;
  std::int64_t kept(std::int64_t places) const;
  /// Peak memory of the backward pass, beyond the saved values.
  std::int64_t backward(std::int64_t places) const;
};

/// Places of one of `experts` experts, rounded up.
std::int64_t placesOfOne(std::int64_t places, std::int64_t experts);

}  // namespace cleave::graph
