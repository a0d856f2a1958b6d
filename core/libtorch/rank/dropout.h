#pragma once
/// Dropout that is the same however its operand is split: whether an element stays depends on a key and on the
/// element's place in the whole tensor, so that each rank decides for its own part what all others would, replicas
/// decide alike, and a step that is run again drops the same. LibTorch inside.
#include "base/result.h"
#include "rules/placement.h"

#include <ATen/core/Tensor.h>

namespace cleave::torch_rank {

/// The key of one pass over a program: another one for each seed and each pass, the same on every machine.
std::uint64_t drawKey(std::uint64_t seed, std::int64_t pass);

/// What decides in a pass. Replicas of a program have as many rows each of one batch (program/mesh.h), which are the
/// first dimension of whatever is dropped: each replica drops what a program of the whole batch would of its rows.
struct PassDraws {
  std::uint64_t key = 0;
  int replica = 0;
};

struct Dropout {
  double chance = 0;           ///< of an element to become 0, in [0, 1]
  std::int64_t stream = 0;     ///< numbers the dropouts of a program
  graph::Shape shape;          ///< of the whole
  rules::Placement placement;  ///< of the ranks' parts
  int rank = 0, ranks = 1;
};

/// `x` is this rank's part; the result is differentiable as at::dropout's. Which elements stay is decided by the 24
/// highest bits of SplitMix64's output (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) for
/// the element's row-major index in the whole of all replicas. What is padding may get anything.
at::Tensor drop(const at::Tensor& x, const Dropout& dropout, const PassDraws& draws);

}  // namespace cleave::torch_rank
