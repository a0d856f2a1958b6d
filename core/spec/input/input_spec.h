#pragma once
/// The inputs that a model is captured for. Plain data, comparable, without the model's name.
///
///     InputSpec{.batch = 2, .sequence = 16}            // a folder's input_ids are [2, 16]
///     InputSpec{.sizes = {{"s70", 16}}}                // an exported program's symbol
///
/// A user asks with fields left out. A capture answers with a settled one (torch_capture::CapturedModel::input): every
/// size and the element type are set, and the same graph comes of it again.
#include "base/result.h"
#include "formats/size_expression.h"
#include "graph/freezing.h"
#include "graph/states.h"
#include "graph/types.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cleave::spec {

/// Default sequence length of a model folder; models with fewer learned positions get those.
inline constexpr std::int64_t kDefaultSequence = 128;
/// Above every context length in use.
inline constexpr std::int64_t kMostPositions = 1 << 24;

struct InputSpec {
  /// Sizes of dimensions 0 and 1 of the inputs. nullopt: 1 and kDefaultSequence for a folder, and the sizes at export
  /// for an exported program.
  std::optional<std::int64_t> batch, sequence;
  formats::SymbolSizes sizes = {};    ///< exported programs: sizes by symbol; they override the other two
  std::optional<graph::DType> dtype;  ///< folders; nullopt: the config's
  bool mask = false;                  ///< with an `attention_mask` input
  bool tokenTypes = false;            ///< with a `token_type_ids` input
  bool loss = true;                   ///< folders: with `labels` and the loss
  bool dropout = false;               ///< folders: with the dropout of training; an export has its own
  std::int64_t logitsToKeep = 0;      ///< positions with logits, counted from the last; 0: all
  /// Causal models: a prefill of `sequence` positions, or one decode step (`sequence` is 1), whose cache has room for
  /// `cachePositions` (graph/states.h).
  graph::CacheUse cacheUse = graph::CacheUse::None;
  std::int64_t cachePositions = 0;
  /// Exported programs: a safetensors file, or a folder of them, with the tensors that the archive lacks; absolute;
  /// empty: none.
  std::string weights = {};
  graph::Freezing freezing = {};  ///< parameters that training does not change, besides those that the model freezes
  bool operator==(const InputSpec&) const = default;
};

/// BadUsage for inputs that no model folder supports: a sentence without its full stop.
Result<void> check(const InputSpec& input);

}  // namespace cleave::spec
