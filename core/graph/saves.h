#pragma once
/// The values that autograd saves of a call until its backward pass: the rows' `saves` (operators.h), applied to one
/// call. Pure.
#include "graph/gradients.h"

#include <functional>

namespace cleave::graph {

/// Visits the values that the call saves, some of them twice; visits nothing for a call without a gradient. Returns
/// true if the call saves something that is not a value of the graph (a mask, a log-softmax).
bool forEachSaved(const Graph& graph, const Gradients& gradients, NodeId node,
                  const std::function<void(ValueId)>& visit);

}  // namespace cleave::graph
