#pragma once
/// The forward pass and the loss of a model of any family (families/family.h), on tensors of any device.
///
/// Operators, their order and the module paths are those of transformers' modelling files with
/// `attn_implementation="sdpa"` in evaluation mode (or, with dropout, in training mode), so that a captured graph reads
/// like the model's own code and results equal transformers' to rounding. Stateless; safe from any thread. LibTorch's
/// exceptions pass through: callers inside core/libtorch translate them.
///
///     Weights host(...);
///     const ModelOutputs out = runModel(config, {ids, mask, labels}, {.dtype = at::kFloat}, host);
#include "families/model_config.h"
#include "graph/states.h"
#include "libtorch/models/model_host.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::models {

struct ModelInputs {
  at::Tensor inputIds;                      ///< int64 [batch, sequence]
  std::optional<at::Tensor> attentionMask;  ///< int64 [batch, sequence]: 1 to attend, 0 for padding on either side
  std::optional<at::Tensor> tokenTypeIds;   ///< int64 [batch, sequence]; families with token types only
  /// int64 [batch, sequence], -100: not counted (causal models shift them by one inside); of a classifier [batch].
  std::optional<at::Tensor> labels;
  std::optional<at::Tensor> cachePosition;  ///< int64 [1], where a cache is read: the place of the one token of each
                                            ///< row
};

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;  ///< of the parameters and of what is computed with them
  std::int64_t logitsToKeep = 0;      ///< causal heads: only the last positions; 0: all; the loss needs all
  graph::CacheUse cacheUse = graph::CacheUse::None;  ///< causal models: keys and values are given out, or taken too
  std::int64_t cachePositions = 0;                   ///< that the cache has room for
  bool dropout = false;                              ///< with the dropout of training, where the config has some
};

struct ModelOutputs {
  at::Tensor logits;  ///< float32 (float64 for float64 parameters) [batch, kept, vocab]; of a classifier [batch,
                      ///< labels]
  std::optional<at::Tensor> loss;                           ///< scalar; with labels only
  std::vector<std::pair<std::string, at::Tensor>> present;  ///< of a cache that is filled or read, by
                                                            ///< graph::presentName
};

ModelOutputs runModel(const families::ModelConfig& config, const ModelInputs& inputs, const ModelOptions& options,
                      ModelHost& host);

}  // namespace cleave::models
