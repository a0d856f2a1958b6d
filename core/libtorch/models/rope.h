#pragma once
/// Inverse frequencies of rotary position embeddings, for each kind of scaling.
#include "libtorch/models/decoder_config.h"

#include <ATen/core/Tensor.h>

namespace cleave::models {

/// float32 [rotatedDim / 2] on the CPU, bit for bit as transformers computes them. `sequence` is the number of
/// positions of this run: kind Dynamic stretches the base when it exceeds `maxPositions`.
at::Tensor inverseFrequencies(const RopeConfig& rope, std::int64_t rotatedDim, std::int64_t maxPositions,
                              std::int64_t sequence);

}  // namespace cleave::models
