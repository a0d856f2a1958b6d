#pragma once
/// Consecutive elements selected by constant indices (`x[:, :, [-2]]`) are slices. Rules support slices, but not
/// arbitrary indices.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Replaces `index(x, [None, .., [a, a + 1, ..]])` and `index_select` by `slice(x, dim, a, ..)`. Later nodes and values
/// move up.
void makeSlices(graph::Graph& aten);

}  // namespace cleave::torch_capture
