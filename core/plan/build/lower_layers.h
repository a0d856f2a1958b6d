#pragma once
/// Layers with a strategy: the operator on this rank's part of the weights, with the collectives before and after it.
///
/// Sources: Megatron-LM, arXiv:1909.08053 section 3 (column, row, vocabulary) and arXiv:2205.05198 section 4.2.2
/// (sequence parallelism: all-gather before column, reduce-scatter after row).
#include "graph/layers.h"
#include "plan/build/local_program.h"
#include "rules/strategies.h"

namespace cleave::plan {

/// Appends layer `id` of the program's ATen graph, on more than one rank. BadInput if its result cannot be divided as
/// the solution says.
Result<void> lowerLayer(LocalProgram& program, NodeId id, const graph::LayerShape& layer,
                        const rules::LayerStrategy& option);

}  // namespace cleave::plan
