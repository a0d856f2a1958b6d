#pragma once
/// How the parts of a value become the whole again. Internal to this room.
#include "graph/graph.h"
#include "rules/placement.h"

#include <functional>

namespace cleave::plan {

/// Appends one single-result call to the program and answers its result.
using AppendCall =
    std::function<graph::ValueId(std::string_view op, std::vector<graph::Argument> args, graph::TensorType type)>;

/// One all-gather, and what it takes to put the parts in order where they are not simply one after the other: replicas
/// are dropped, blocks interleaved, padding trimmed, joint dimensions flattened before and restored after.
/// `part` is a value of `program`; `placement` says how it is placed, `whole` what it becomes.
graph::ValueId addGather(const graph::Graph& program, const AppendCall& append, graph::ValueId part,
                         const rules::Placement& placement, const graph::TensorType& whole, int ranks);

}  // namespace cleave::plan
