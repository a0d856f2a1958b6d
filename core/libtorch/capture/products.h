#pragma once
/// Projections that a model spells as a product with a transposed weight, `x @ W.T`, or with the weight first, `W @ x`,
/// are the linear layers they mean: the same sums, and a layer that can be split.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// `mm(x, permute(W, [1, 0]))` becomes `linear(x, W)`, and `addmm(b, x, permute(W, [1, 0]))` with factors of 1
/// `linear(x, W, b)`, for weights W [out, in] (graph/weights.h). `bmm` with one such matrix, or one [in, out], expanded
/// for the whole batch becomes `linear` or `mm`. `mm(W, x)`, `bmm` of such an expanded W, and `mv(W, x)` become
/// `linear` of x, transposed before and after. What nothing reads any more is gone; later nodes and values move up.
void makeLinear(graph::Graph& aten);

}  // namespace cleave::torch_capture
