#pragma once
/// A program that computes the same with its sums in another order: what rounding alone does to a result.
///
/// Each product of a layer is taken apart along the dimension that it sums over, as ranks that split it do, and the
/// parts are added one after the other; a bias comes last. In exact arithmetic nothing changes. The difference between
/// the two programs' results is the ruler for a comparison (pipeline/rounding.h).
#include "graph/graph.h"

namespace cleave::graph {

/// Values keep their names and types; the parts are new values. A product over fewer than `parts` indices has one part
/// for each; one over a single index stays. `parts` is 2 or more.
Graph withReorderedSums(const Graph& graph, int parts);

}  // namespace cleave::graph
