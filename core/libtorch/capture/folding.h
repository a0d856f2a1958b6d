#pragma once
/// Constant folding. Exported programs recompute some numbers from constants in each step, such as the ALiBi slopes of
/// all heads. As constants they exist from the start, and a rank can have only the part of its heads.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Turns results with at most 1024 floating point numbers into constants if element-wise operators compute them from
/// constants. Does not fold random numbers and uninitialised memory.
void foldConstants(graph::Graph& aten);

}  // namespace cleave::torch_capture
