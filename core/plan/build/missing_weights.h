#pragma once
/// Parameters that a plan's ranks read and the checkpoint lacks. Pure; safe from any thread.
///
///     if (const std::string lacks = missingWeights(plan.parameters, *plan.graph); !lacks.empty())
///       say("The checkpoint lacks " + lacks);  // "12 of the model's 21 parameters: all of model.layers.{1-2}"
#include "graph/graph.h"
#include "program/shard_map.h"

#include <string>

namespace cleave::plan {

/// Lists whole blocks, then single parameters, equal ones of repeated blocks together. Empty if every piece of every
/// rank is in a file, also in packed form. `model`: the ATen graph, for packed parameters.
std::string missingWeights(const program::ShardMap& parameters, const graph::Graph& model);

}  // namespace cleave::plan
