#pragma once
/// How the graph uses a projection's output features. This decides how the columns are split. Only this room includes
/// it.
///
/// A fused projection (qkv, gate_up) is sliced along its last dimension, and each slice is a block of its own. A
/// projection to fewer heads than ranks keeps each head on several neighbouring ranks. To find both, the functions
/// follow the layer's result to slices, splits and the view that makes heads.
#include "graph/graph.h"
#include "rules/placement.h"

#include <optional>
#include <vector>

namespace cleave::rules {

/// Number of neighbouring ranks that share one part of `heads`, so that each part has at least one head. 1 if the heads
/// divide by the ranks or are unknown (0).
int replicasFor(std::int64_t heads, int worldSize);

/// The split of the last dimension of `result` that its readers require; nullopt if the plain split suffices.
std::optional<Placement> columnsForReaders(const graph::Graph& graph, graph::ValueId result, int worldSize);

/// The results of slices or of one split along a dimension, in order. Empty unless they cover the whole dimension and
/// nothing else reads the value.
std::vector<graph::ValueId> piecesAlong(const graph::Graph& graph, graph::ValueId value, int dim);

/// True for a parameter, a constant, or a view of one.
bool isOfSource(const graph::Graph& graph, graph::ValueId value);

/// True if the last dimension of `result` is a vocabulary: it reaches the loss or an output of the graph at its full
/// size. Such a dimension may be padded, because the loss and the final gather drop the padding.
bool makesClasses(const graph::Graph& graph, graph::ValueId result);

}  // namespace cleave::rules
