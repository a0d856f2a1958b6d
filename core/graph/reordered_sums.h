#pragma once
/// A program that computes the same with its sums in another order: what rounding alone does to a result.
///
/// Each product of a layer is computed in parts along the dimension that it sums over, as ranks that split it do. The
/// parts are added in order; a bias comes last. In exact arithmetic nothing changes. The difference between the two
/// programs' results is the tolerance of a comparison (pipeline/compare/rounding.h).
#include "graph/graph.h"

namespace cleave::graph {

/// Values keep their names and types; the parts are new values. A product over fewer than `parts` indices has one part
/// for each, and a product over one index does not change. `parts` is 2 or more.
Graph withReorderedSums(const Graph& graph, int parts);

}  // namespace cleave::graph
