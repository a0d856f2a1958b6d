#pragma once
/// Parts of tensors per rank.
#include "rules/placement.h"

#include <ATen/ATen.h>

namespace cleave::test {

inline constexpr double kPadding = 1e6;  ///< value of padding; no other element has it

/// The part of `whole` on `rank`.
inline at::Tensor partOf(const at::Tensor& whole, const rules::Placement& placement, int ranks, int rank) {
  if (placement.isReplicated()) return whole;
  const graph::Shape shape = whole.sizes().vec();
  const graph::Shape local = *placement.localShape(shape, ranks);
  const at::Tensor joint =
      placement.lastDim() > placement.firstDim() ? whole.flatten(placement.firstDim(), placement.lastDim()) : whole;
  std::vector<at::Tensor> pieces;
  for (const rules::Range& range : placement.ranges(shape, ranks, rank))
    pieces.push_back(joint.narrow(placement.firstDim(), range.start, range.length));
  at::Tensor part = at::cat(pieces, placement.firstDim());
  std::int64_t wanted = 1;
  for (int dim = placement.firstDim(); dim <= placement.lastDim(); ++dim) wanted *= rules::sizeAt(local, dim);
  if (const std::int64_t padding = wanted - part.size(placement.firstDim()); padding > 0) {
    std::vector<std::int64_t> more = part.sizes().vec();
    more[static_cast<std::size_t>(placement.firstDim())] = padding;
    part = at::cat({part, at::full(more, kPadding, part.options())}, placement.firstDim());
  }
  return part.reshape(local).contiguous();
}

}  // namespace cleave::test
