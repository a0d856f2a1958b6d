#pragma once
/// The forward work of an operator before anything is split, from shapes alone: the FLOPs that cost_model.h counts on
/// one rank. For shares of work ("71 % of the FLOPs are split"), which need no device and no solution.
#include "graph/graph.h"
#include "graph/operators.h"

#include <vector>

namespace cleave::solve {

/// By NodeId; 0 for what computes nothing. Whole numbers, exact below 2^53.
std::vector<double> replicatedFlops(const graph::Graph& graph);

/// Product: how many elements each element of the result sums over; Convolution: weights a position; Attention: key
/// positions; 1 for everything else. `op`: the node's row.
std::int64_t workDepth(const graph::Graph& graph, const graph::Node& node, const graph::Operator& op);

}  // namespace cleave::solve
