#pragma once
/// What autograd keeps of a call until its backward pass: the rows' `saves` (operators.h), applied to one call. Pure.
#include "graph/gradients.h"

#include <functional>

namespace cleave::graph {

/// Visits the values that the call keeps, some of them twice; nothing for a call without a gradient. True when it keeps
/// something that is no value of the graph (a mask, a log-softmax).
bool forEachSaved(const Graph& graph, const Gradients& gradients, NodeId node,
                  const std::function<void(ValueId)>& visit);

}  // namespace cleave::graph
