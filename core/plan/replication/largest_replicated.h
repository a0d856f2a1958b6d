#pragma once
/// The replicated parameters that need the most memory, and the operator whose reason is theirs.
#include "plan/shares.h"
#include "solve/problem/problem.h"

#include <optional>

namespace cleave::plan {

/// The kind of module with the most bytes of replicated parameters; its reason is NotKnown. nullopt: no parameter is
/// replicated, or the plan has one rank.
std::optional<WholeWeights> largestReplicated(const solve::Problem& problem, const solve::Solution& solution);

/// The first layer that multiplies by the parameter, however it is prepared; else the first operator that reads it.
/// Invalid if no operator reads it.
graph::NodeId mainReader(const graph::Graph& graph, graph::ValueId parameter);

}  // namespace cleave::plan
