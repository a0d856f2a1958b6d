#pragma once
/// Gathers the parts of a value. Internal to this room.
#include "graph/graph.h"
#include "rules/placement.h"

#include <functional>

namespace cleave::plan {

/// Appends a call with one result to the program and returns the result.
using AppendCall =
    std::function<graph::ValueId(std::string_view op, std::vector<graph::Argument> args, graph::TensorType type)>;

/// Appends one all-gather, and the operators that order the parts: drop replicas, interleave blocks, trim padding, and
/// flatten joint dimensions before and restore them after. `part` is a value of `program` with this `placement`;
/// `whole` is the type of the result.
graph::ValueId addGather(const graph::Graph& program, const AppendCall& append, graph::ValueId part,
                         const rules::Placement& placement, const graph::TensorType& whole, int ranks);

}  // namespace cleave::plan
