#pragma once
/// Which values of a training step have a gradient: real numbers that depend on a parameter that
/// is not frozen, through operators that
/// pass gradients on, and that what is trained depends on. Pure.
///
///     const Gradients gradients = findGradients(graph);
///     gradients.loss.isValid() && gradients.of(weight);
#include "graph/graph.h"

#include <vector>

namespace cleave::graph {

struct Gradients {
  ValueId loss;                ///< the output that is one real number and depends on a parameter; of several the one
                               ///< called "loss", else the first; invalid: there is none
  std::vector<bool> ofValue;   ///< by ValueId
  std::vector<bool> ofNode;    ///< by NodeId: of any result, so that it hands gradients on to what it reads
  std::vector<bool> isOutput;  ///< by ValueId: training needs its loss alone; all outputs where there is none
  bool of(ValueId value) const { return ofValue[value.index()]; }
  bool of(NodeId node) const { return ofNode[node.index()]; }
};

Gradients findGradients(const Graph& graph);

}  // namespace cleave::graph
