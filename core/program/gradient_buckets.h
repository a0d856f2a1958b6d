#pragma once
/// The gradient sums of a plan's replicas (mesh.h) at the end of a training step. All gradients of one element type are
/// in one all-reduce over the ranks with the same part.
#include "graph/gradients.h"

namespace cleave::program {

struct GradientBucket {
  graph::DType dtype = graph::DType::Float32;
  std::vector<graph::ValueId> parameters;  ///< of the rank program, in its order
  std::int64_t bytes = 0;                  ///< bytes of all this rank's parts
};

/// Every parameter with a gradient is in one bucket. Buckets are in the order in which the program first has their
/// types.
std::vector<GradientBucket> gradientBuckets(const graph::Graph& program, const graph::Gradients& gradients);

}  // namespace cleave::program
