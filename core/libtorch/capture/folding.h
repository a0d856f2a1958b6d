#pragma once
/// Numbers that an exported program computes anew in each step of nothing but numbers, such as the slopes of ALiBi's
/// biases, one for each head. As constants they are there from the start, and a rank can hold its heads' part alone.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Lists of at most 1024 floating point numbers that elementwise operators make of constants and of each other become
/// constants. What draws random numbers, or leaves memory as it finds it, does not.
void foldConstants(graph::Graph& aten);

}  // namespace cleave::torch_capture
