#pragma once
/// The heads of an attention operator, as its operands' shapes tell them.
#include "graph/graph.h"

#include <cstdint>
#include <optional>

namespace cleave::graph {

/// Queries of [.., heads, positions, head size], keys and values of as many heads or fewer (grouped or multi-query
/// attention).
struct Heads {
  std::int64_t query = 1;
  std::int64_t keyValue = 1;  ///< before they are repeated for the queries
  bool operator==(const Heads&) const = default;
};

/// Of an attention operator whose query has heads; else nullopt.
std::optional<Heads> headsOf(const Graph& graph, NodeId node);

/// The smallest value that `value` is a view or repetition of; the earliest of equals.
ValueId beforeRepetition(const Graph& graph, ValueId value);

}  // namespace cleave::graph
