#pragma once
/// Neighbours that a program picks by constant indices (`x[:, :, [-2]]`) are slices: rules follow these, where indices
/// could be any.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// `index(x, [None, .., [a, a + 1, ..]])` and `index_select` become `slice(x, dim, a, ..)`. Later nodes and values move
/// up.
void makeSlices(graph::Graph& aten);

}  // namespace cleave::torch_capture
