#pragma once
/// The meaning of a source's dimension, found from the operators that read the source. A dimension counts as heads if
/// the source meets attention scores, or features of a layer that were split into heads. It counts as features if the
/// source meets element-wise results of linear layers. Only this room includes it. Pure and thread-safe.
#include "graph/graph.h"

#include <vector>

namespace cleave::rules {

struct DimMeaning {
  bool isHeads = false;
  std::vector<graph::ValueId> features;  ///< results of the layers whose output features the dimension has
};
/// Looks at a few operators after the source.
DimMeaning meaningOf(const graph::Graph& graph, graph::ValueId source, int dim);

/// True if dimension `dim` of a value counts as attention heads.
bool meansHeads(const graph::Graph& graph, graph::ValueId value, int dim);

}  // namespace cleave::rules
