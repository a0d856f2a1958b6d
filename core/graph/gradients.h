#pragma once
/// The values of a training step that have a gradient. They are real numbers, depend on a parameter that is not frozen
/// through operators that pass gradients on, and the loss depends on them. Pure.
///
///     const Gradients gradients = findGradients(graph);
///     gradients.loss.isValid() && gradients.of(weight);
#include "graph/graph.h"

#include <vector>

namespace cleave::graph {

struct Gradients {
  ValueId loss;                ///< the output that is one real number and depends on a parameter; the one called "loss"
                               ///< if there are several, else the first; invalid if there is no such output
  std::vector<bool> ofValue;   ///< by ValueId
  std::vector<bool> ofNode;    ///< by NodeId: some result has a gradient, so the node passes gradients to its operands
  std::vector<bool> isOutput;  ///< by ValueId: the loss only, or all outputs of a graph without a loss
  bool of(ValueId value) const { return ofValue[value.index()]; }
  bool of(NodeId node) const { return ofNode[node.index()]; }
};

Gradients findGradients(const Graph& graph);

}  // namespace cleave::graph
