#pragma once
/// Inverse frequencies of rotary position embeddings, for each kind of scaling.
#include "families/model_config.h"

#include <ATen/core/Tensor.h>

namespace cleave::models {

/// float32 [rope.dim / 2] on the CPU, bitwise equal to transformers. `sequence` is the number of positions of this run:
/// kinds Dynamic and LongRope depend on whether it exceeds the trained positions.
at::Tensor inverseFrequencies(const families::RopeConfig& rope, std::int64_t maxPositions, std::int64_t sequence);

}  // namespace cleave::models
