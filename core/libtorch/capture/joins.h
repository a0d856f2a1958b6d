#pragma once
/// A tensor that is written piece by piece, until nothing of what it was is left, is the pieces joined: `cat` has rules
/// for all splits, where writing into memory that every rank holds would have to be cut.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// `slice_scatter` after `slice_scatter` along one dimension, which between them write all of it once, become one
/// `cat`. Later nodes and values move up.
void makeJoins(graph::Graph& aten);

}  // namespace cleave::torch_capture
