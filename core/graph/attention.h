#pragma once
/// The heads of an attention operator, from the shapes of its operands.
#include "graph/graph.h"

#include <cstdint>
#include <optional>

namespace cleave::graph {

/// Queries are [.., heads, positions, head size]. Keys and values have as many heads, or fewer (grouped or multi-query
/// attention).
struct Heads {
  std::int64_t query = 1;
  std::int64_t keyValue = 1;  ///< before they are repeated for the queries
  bool operator==(const Heads&) const = default;
};

/// The heads of an attention operator. nullopt for other nodes and for queries without heads.
std::optional<Heads> headsOf(const Graph& graph, NodeId node);

/// The smallest value that `value` is a view or repetition of; the earliest of equal ones.
ValueId beforeRepetition(const Graph& graph, ValueId value);

}  // namespace cleave::graph
