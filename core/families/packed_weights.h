#pragma once
/// Stored sizes of a quantized model's parameters, instead of the sizes of their types. If the checkpoint's tensors are
/// present, a size is the sum of all tensors of a parameter (packed weights, scales, zeros, indices ...). Otherwise it
/// follows from the config. Pure; the graph must not be shared yet.
#include "families/model_config.h"
#include "formats/safetensors.h"
#include "graph/graph.h"

namespace cleave::families {

/// Sets Graph::packedBytes, and WeightSource::partOf of the tensors of packed parameters. Does nothing if the model is
/// not quantized. BadInput for a parameter with more stored bytes than possible (mostPackedBytes).
Result<void> packWeights(const ModelConfig& config, graph::Graph& graph, formats::WeightSources& tensors);

}  // namespace cleave::families
