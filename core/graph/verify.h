#pragma once
/// Checks that a graph from a file or a builder is well formed.
#include "graph/graph.h"

#include <cstddef>
#include <cstdint>

namespace cleave::graph {

/// Limit on graphs from files.
inline constexpr std::size_t kMaxNodes = 2'000'000;

/// Upper bound on the bytes of a packed parameter. Scales and zeros of small groups may exceed a tiny weight.
std::int64_t mostPackedBytes(const TensorType& type);

/// Checks ids, order, arity, sizes (not negative, bytes fit 64 bits), unique names, scopes and packed bytes. The error
/// names the node.
Result<void> verify(const Graph& graph);

}  // namespace cleave::graph
