#pragma once
/// What the graph does with a projection's output features, as far as that decides how its columns must be cut. Inside
/// this room only.
///
/// A fused projection (qkv, gate_up) is cut into pieces of its last dimension: each piece is a block of its own. A
/// projection to fewer heads than ranks keeps each head on several neighbouring ranks. Both are found by looking from
/// the layer's result forwards to slices, splits and the view that makes heads.
#include "graph/graph.h"
#include "rules/placement.h"

#include <optional>
#include <vector>

namespace cleave::rules {

/// How many neighbouring ranks hold one part of so many heads, so that no part is less than a head; 1 when the heads
/// divide or are unknown (0).
int replicasFor(std::int64_t heads, int worldSize);

/// The split of the last dimension of `result` that what follows asks for, other than the plain one; nullopt: none.
std::optional<Placement> columnsBehind(const graph::Graph& graph, graph::ValueId result, int worldSize);

/// What slices or one split cut out of a dimension, where together they cover all of it and nothing else reads the
/// value; in their order, else empty.
std::vector<graph::ValueId> piecesAlong(const graph::Graph& graph, graph::ValueId value, int dim);

/// True for a parameter, a constant, or a view of one.
bool isOfSource(const graph::Graph& graph, graph::ValueId value);

/// True when the last dimension of `result` is a vocabulary: it reaches the loss or an output of the graph and nothing
/// on the way changes its size. Such a dimension may be padded, as the loss and the gather at the end leave the padding
/// out.
bool makesClasses(const graph::Graph& graph, graph::ValueId result);

}  // namespace cleave::rules
