#pragma once
/// Parameters that no layer owns because what a projection reads of them is a piece: torch.nn.MultiheadAttention has
/// the weights of query, key and value in one, which attention to something else cuts into [query | key and value], or
/// their biases alone. Where the projection's columns may be split, so may the piece that makes them. Inside this room
/// only.
#include "graph/graph.h"
#include "rules/placement.h"

#include <optional>

namespace cleave::rules {

/// The split of the parameter's first dimension in which each rank holds its columns of every projection that reads a
/// piece of it, or all of it, as weight or bias; nullopt: something else reads it too, or the columns do not divide.
std::optional<Placement> columnsOfPieces(const graph::Graph& graph, graph::ValueId parameter, int worldSize);

}  // namespace cleave::rules
