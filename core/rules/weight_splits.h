#pragma once
/// Parameters that layers read through other operators: a weight that is cast, sliced, transposed or normalised before
/// it is multiplied (graph/weights.h). Such a parameter may be split so that each rank computes its part of the layer's
/// weight from its part of the parameter. Inside this room only.
///
/// torch.nn.MultiheadAttention packs query, key and value into one parameter, of which attention to something else
/// reads slices: each slice is split like the columns of its projection.
#include "graph/graph.h"
#include "rules/strategies.h"

#include <vector>

namespace cleave::rules {

/// The placements of `parameter` from which the operators between compute a placement that a strategy of a layer wants
/// of its weight, in the order of the layers' strategies; other sources on the way are placed alike. Empty where layers
/// read it as it is, or not at all.
std::vector<Placement> weightSplits(const graph::Graph& graph, graph::ValueId parameter,
                                    const StrategyContext& context);

}  // namespace cleave::rules
