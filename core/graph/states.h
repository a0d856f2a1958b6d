#pragma once
/// The KV cache of generation: keys and values of a causal model's layers, as inputs and outputs of its graphs.
///
///     prefill (CacheUse::Fills)   input_ids [b, s]  →  logits, present.0.key, present.0.value, present.1.key, ...
///     decode (CacheUse::Reads)    input_ids [b, 1], cache_position [1], past_key_values.0.key [b, h, c, d], ...
///                                 →  logits, present.0.key, ...   the same caches, written at cache_position
///
/// `h` key/value heads, `c` positions of cache capacity, `d` features. The names are those of Optimum's ONNX exports.
/// Unlike other inputs a cache may be split, and unlike other outputs it is not gathered: each rank keeps the part of
/// its own heads.
#include "graph/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::graph {

/// How a forward pass uses a cache.
enum class CacheUse : std::uint8_t {
  None,
  Fills,  ///< prefill of a prompt: its keys and values are outputs
  Reads,  ///< decode of one token after them: the cache is input and output
};
std::string_view toText(CacheUse use);  ///< "none", "fills", "reads"
std::optional<CacheUse> parseCacheUse(std::string_view text);

/// The input with the token's position, in the cache and in the sequence.
inline constexpr std::string_view kCachePosition = "cache_position";
/// The dimensions of a cache.
inline constexpr int kCacheHeads = 1, kCachePositions = 2;

/// "past_key_values.3.key". `part` is "key" or "value".
std::string pastName(std::size_t layer, std::string_view part);
/// "present.3.key"
std::string presentName(std::size_t layer, std::string_view part);
bool isPast(std::string_view input);
bool isPresent(std::string_view output);

/// One tensor that generation passes from step to step.
struct State {
  std::string name;        ///< "3.key": the same in all graphs of a model
  ValueId past;            ///< the input; invalid in a prefill
  ValueId present;         ///< the output
  std::size_t output = 0;  ///< index among the graph's outputs
};
/// In the order of the outputs; empty for a graph without a cache.
std::vector<State> statesOf(const Graph& graph);

/// True if a node writes into a cache without other readers and passes the result on. The cache's memory may then be
/// written in place.
bool writesInPlace(const Graph& graph, NodeId node);

}  // namespace cleave::graph
