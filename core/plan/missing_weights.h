#pragma once
/// What a checkpoint lacks of the parameters that a plan's ranks read. Pure; safe from any thread.
///
///     if (const std::string lacks = missingWeights(plan.parameters, *plan.graph); !lacks.empty())
///       say("The checkpoint lacks " + lacks);  // "12 of the model's 21 parameters: all of model.layers.{1-2}"
#include "graph/graph.h"
#include "program/shard_map.h"

#include <string>

namespace cleave::plan {

/// Whole blocks as such, then single parameters, equal ones of repeated blocks as one. Empty: every piece of every rank
/// is in a file, or packed in one. `model`: the ATen graph, which knows what is packed.
std::string missingWeights(const program::ShardMap& parameters, const graph::Graph& model);

}  // namespace cleave::plan
