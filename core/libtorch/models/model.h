#pragma once
/// The forward pass and the loss of a model of any family (families/family.h), on tensors of any device.
///
/// Operators, their order and the module paths are those of transformers' modelling files with
/// `attn_implementation="sdpa"` in evaluation mode (with dropout: training mode). So a captured graph reads like the
/// model's own code, and results equal transformers' up to rounding. Stateless; safe from any thread. LibTorch's
/// exceptions pass through: callers inside core/libtorch translate them.
///
///     Weights host(...);
///     const ModelOutputs out = runModel(config, {ids, mask, labels}, {.dtype = at::kFloat}, host);
#include "families/model_config.h"
#include "libtorch/models/model_host.h"
#include "libtorch/models/model_inputs.h"

namespace cleave::models {

ModelOutputs runModel(const families::ModelConfig& config, const ModelInputs& inputs, const ModelOptions& options,
                      ModelHost& host);

}  // namespace cleave::models
