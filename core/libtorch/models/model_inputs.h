#pragma once
/// Inputs, options and outputs of a model's forward pass. LibTorch inside.
#include "graph/states.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::models {

struct ModelInputs {
  at::Tensor inputIds;                      ///< int64 [batch, sequence]
  std::optional<at::Tensor> attentionMask;  ///< int64 [batch, sequence]: 1 to attend, 0 for padding on either side
  std::optional<at::Tensor> tokenTypeIds;   ///< int64 [batch, sequence]; families with token types only
  /// int64 [batch, sequence]; -100 is ignored (causal models shift the labels by one). Classifiers: [batch].
  std::optional<at::Tensor> labels;
  std::optional<at::Tensor> cachePosition;  ///< int64 [1], if a cache is read: the position of each row's one token
};

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;  ///< of the parameters and of the computation
  std::int64_t logitsToKeep = 0;      ///< causal heads: only the last positions; 0: all; the loss needs all
  graph::CacheUse cacheUse = graph::CacheUse::None;  ///< causal models: whether the cache is an output, or also an
                                                     ///< input
  std::int64_t cachePositions = 0;                   ///< capacity of the cache
  bool dropout = false;                              ///< applies the dropout of training, if the config has dropout
};

struct ModelOutputs {
  at::Tensor logits;  ///< float32 (float64 for float64 parameters) [batch, kept, vocab]; classifiers: [batch, labels]
  std::optional<at::Tensor> loss;                           ///< scalar; with labels only
  std::vector<std::pair<std::string, at::Tensor>> present;  ///< the cache that was filled or read, by
                                                            ///< graph::presentName
};

}  // namespace cleave::models
