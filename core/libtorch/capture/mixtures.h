#pragma once
/// Mixtures of experts that a program spells out token by token are the layer they mean, `cleave::moe_experts`: the
/// same sums, split by expert or inside each expert.
///
/// Two spellings, as transformers exports them; k experts for each of T tokens are S = T · k rows:
///   batched  each row's matrices are picked by index and multiplied by it (`bmm`)
///   grouped  rows are sorted by expert, multiplied group by group (`cleave::grouped_product`), and put back in order
/// Between the products stands one of the activations that the layer knows (graph::ParallelOp::MoeExperts). What is
/// spelled otherwise stays as it is.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Later nodes and values move up.
void makeExperts(graph::Graph& aten);

}  // namespace cleave::torch_capture
