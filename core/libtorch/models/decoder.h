#pragma once
/// The forward pass and the loss of a decoder, for every row of the architecture table, on tensors of any device.
///
/// Operators, their order and the module paths are those of transformers' modelling files with
/// `attn_implementation="sdpa"` in evaluation mode, so that a captured graph reads like the model's own code and
/// results equal transformers' to rounding. Stateless; safe from any thread. LibTorch's exceptions pass through:
/// callers inside core/libtorch translate them.
///
///     Weights host(...);
///     const DecoderOutputs out = runDecoder(config, {ids, mask, labels}, {.dtype = at::kFloat}, host);
#include "libtorch/models/decoder_config.h"
#include "libtorch/models/model_host.h"

#include <optional>

namespace cleave::models {

struct DecoderInputs {
  at::Tensor inputIds;                      ///< int64 [batch, sequence]
  std::optional<at::Tensor> attentionMask;  ///< int64 [batch, sequence]: 1 to attend, 0 for padding on either side
  std::optional<at::Tensor> labels;         ///< int64 [batch, sequence], -100: not counted; shifted by one inside
};

struct DecoderOptions {
  at::ScalarType dtype = at::kFloat;  ///< of the parameters and of what is computed with them
  std::int64_t logitsToKeep = 0;      ///< only the last positions; 0: all; the loss needs all
};

struct DecoderOutputs {
  at::Tensor logits;               ///< float32 (float64 for float64 parameters) [batch, kept, vocab]
  std::optional<at::Tensor> loss;  ///< scalar; with labels only
};

DecoderOutputs runDecoder(const DecoderConfig& config, const DecoderInputs& inputs, const DecoderOptions& options,
                          ModelHost& host);

}  // namespace cleave::models
