#pragma once
/// Recognises a mixture of experts in its operators and replaces it by the layer `cleave::moe_experts`. The sums are
/// the same, but the layer can be split by expert or inside each expert.
///
/// Two forms, as in transformers' exports; k experts for each of T tokens give S = T · k rows:
///   batched  selects each row's matrix by index and multiplies by it (`bmm`)
///   grouped  sorts rows by expert, multiplies group by group (`cleave::grouped_product`), and restores the order
/// Between the products is one of the activations that the layer supports (graph::ParallelOp::MoeExperts). Other forms
/// do not change.
#include "graph/graph.h"

namespace cleave::torch_capture {

/// Later nodes and values move up.
void makeExperts(graph::Graph& aten);

}  // namespace cleave::torch_capture
