#pragma once
/// A tensor whose parts are all overwritten equals the concatenation of these parts. `cat` has rules for all splits,
/// but writing into a replicated tensor does not.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Replaces a chain of `slice_scatter` along one dimension that writes every element once by one `cat`. Later nodes and
/// values move up.
void makeJoins(graph::Graph& aten);

}  // namespace cleave::torch_capture
