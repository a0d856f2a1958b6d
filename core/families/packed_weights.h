#pragma once
/// What the parameters of a quantized model really take, in place of what their types would.
///
/// Where the checkpoint's tensors are there, the sum of all that makes a parameter (packed weights, scales, zeros,
/// indices ...); else what its config says of such a weight. Pure; the graph is not shared yet.
#include "families/model_config.h"
#include "formats/safetensors.h"
#include "graph/graph.h"

namespace cleave::families {

/// Sets Graph::packedBytes, and WeightSource::partOf of the tensors that make packed parameters. Nothing where the
/// model is not quantized. BadInput for a parameter that is stored in more bytes than it can be (mostPackedBytes).
Result<void> packWeights(const ModelConfig& config, graph::Graph& graph, formats::WeightSources& tensors);

}  // namespace cleave::families
