#pragma once
/// Recognises linear layers in products with a transposed weight, `x @ W.T`, or with the weight first, `W @ x`. The
/// sums are the same, but a layer can be split.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// For weights W [out, in] (graph/weights.h), replaces `mm(x, permute(W, [1, 0]))` by `linear(x, W)`, and `addmm(b, x,
/// permute(W, [1, 0]))` with factors of 1 by `linear(x, W, b)`. A `bmm` with one such matrix, or one [in, out],
/// expanded over the batch becomes `linear` or `mm`. `mm(W, x)`, `bmm` of such an expanded W, and `mv(W, x)` become
/// `linear` of x, transposed before and after. Removes calls without readers; later nodes and values move up.
void makeLinear(graph::Graph& aten);

}  // namespace cleave::torch_capture
