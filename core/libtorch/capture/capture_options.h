#pragma once
#include "formats/exported_sizes.h"
#include "graph/freezing.h"
#include "graph/states.h"
#include "graph/types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cleave::torch_capture {

/// The inputs that a model is captured for.
struct CaptureOptions {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  bool cutsSequence = false;          ///< shortens the sequence to the model's learned positions if there are fewer
  std::optional<graph::DType> dtype;  ///< nullopt: the config's
  bool mask = false;                  ///< with an `attention_mask` input
  bool tokenTypes = false;            ///< with a `token_type_ids` input
  bool loss = true;                   ///< with `labels` and the loss
  bool dropout = false;               ///< model folders: with the dropout of training
  std::int64_t logitsToKeep = 0;      ///< 0: all positions
  /// Causal models: a prefill of `sequence` positions, or one decode step (`sequence` is 1). The cache has room for
  /// `cachePositions`.
  graph::CacheUse cacheUse = graph::CacheUse::None;
  std::int64_t cachePositions = 0;
  formats::AskedSizes asked = {};  ///< exported programs: sizes that replace batch and sequence
  std::string weights = {};  ///< exported programs: a safetensors file, or a folder of them, with the tensors that the
                             ///< archive lacks; absolute; empty: not given
  graph::Freezing freezing = {};  ///< adds to the frozen parameters of an exported program; see pipeline::openModel
  bool operator==(const CaptureOptions&) const = default;
};

}  // namespace cleave::torch_capture
