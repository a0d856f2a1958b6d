#pragma once
/// Parameters that layers read through other operators: a weight that is cast, sliced, transposed or normalised before
/// the product (graph/weights.h). Such a parameter may be split so that each rank computes its part of the weight from
/// its part of the parameter. Only this room includes it.
///
/// torch.nn.MultiheadAttention packs query, key and value into one parameter. Cross-attention reads slices of it, and
/// each slice is split like the columns of its projection.
#include "graph/graph.h"
#include "rules/placement.h"
#include "rules/strategy_context.h"

#include <vector>

namespace cleave::rules {

/// The placements of `parameter` that lead to a weight placement of one of the layer's strategies, in the order of the
/// strategies. Other sources between parameter and layer get matching placements. Empty if layers read the parameter
/// directly or not at all.
std::vector<Placement> weightSplits(const graph::Graph& graph, graph::ValueId parameter,
                                    const StrategyContext& context);

}  // namespace cleave::rules
