#pragma once
/// What replicas of a plan (mesh.h) add up at the end of a training step: the gradients of all parameters, those of one
/// element type in one all-reduce over the ranks that hold the same part.
#include "graph/gradients.h"

namespace cleave::program {

struct GradientBucket {
  graph::DType dtype = graph::DType::Float32;
  std::vector<graph::ValueId> parameters;  ///< of the rank program, in its order
  std::int64_t bytes = 0;                  ///< of this rank's parts together
};

/// Every parameter that gets a gradient is in one; in the order in which the program has the types first.
std::vector<GradientBucket> gradientBuckets(const graph::Graph& program, const graph::Gradients& gradients);

}  // namespace cleave::program
