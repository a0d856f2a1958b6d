#pragma once
/// Dropout that does not depend on the split of its operand. Each element is kept or dropped by a key and its index in
/// the full tensor. So all ranks and replicas agree, and a repeated step drops the same elements. This header uses
/// LibTorch.
#include "base/result.h"
#include "rules/placement.h"

#include <ATen/core/Tensor.h>

namespace cleave::torch_rank {

/// The key of one pass over a program. It depends only on the seed and the pass.
std::uint64_t drawKey(std::uint64_t seed, std::int64_t pass);

/// The source of randomness in a pass. Replicas have equal numbers of rows of one batch (program/mesh.h), along the
/// first dimension of each operand. Each replica drops the same elements of its rows as a program of the full batch.
struct PassDraws {
  std::uint64_t key = 0;
  int replica = 0;
};

struct Dropout {
  double chance = 0;           ///< probability that an element becomes 0, in [0, 1]
  std::int64_t stream = 0;     ///< index of the dropout in the program
  graph::Shape shape;          ///< shape of the full tensor
  rules::Placement placement;  ///< placement of the operand
  int rank = 0, ranks = 1;
};

/// `x` is this rank's part. The result is differentiable, as with at::dropout. The 24 highest bits of SplitMix64's
/// output (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) for an element's row-major index
/// in the full tensor of all replicas decide if it is kept. Padding may have any value.
at::Tensor drop(const at::Tensor& x, const Dropout& dropout, const PassDraws& draws);

}  // namespace cleave::torch_rank
