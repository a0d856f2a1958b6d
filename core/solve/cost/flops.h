#pragma once
/// The forward FLOPs of each operator without a split, computed from shapes as in cost_model.h for one rank. They give
/// shares of work ("71 % of the FLOPs are split") without a device or a solution.
#include "graph/graph.h"
#include "graph/operators.h"

#include <vector>

namespace cleave::solve {

/// FLOPs by NodeId; 0 for nodes without arithmetic. Integers, exact below 2^53.
std::vector<double> replicatedFlops(const graph::Graph& graph);

/// Product: number of summed elements per element of the result. Convolution: weights per position. Attention: key
/// positions. Otherwise 1. `op`: the row of the node's operator.
std::int64_t workDepth(const graph::Graph& graph, const graph::Node& node, const graph::Operator& op);

}  // namespace cleave::solve
