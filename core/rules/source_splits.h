#pragma once
/// Sources that ranks may hold in parts from the start, beside the parameters that layers own: parameters from which a
/// layer's weight is computed (weight_splits.h); parameters and constants that have something for each attention head
/// (sinks, slopes of linear biases, norms with weights for each head) or for each output feature of a linear layer (a
/// bias that is added apart, a scale). Where these are split each rank needs its part alone: nothing has to be cut for
/// that. And a cache of keys and values (graph/states.h), of which a rank needs what its own heads attend to.
#include "graph/graph.h"
#include "rules/strategies.h"

#include <vector>

namespace cleave::rules {

struct SourceSplit {
  Placement placement;
  std::string reason;  ///< "each rank holds what belongs to its 4 of 8 heads"
};

/// How such a source may be split beside being replicated, best first; empty for all others. Under the candidate set
/// Optimum only weights and caches are split. A dimension is one of heads where the source meets the features of a
/// layer that were cut into heads, or attention scores; one of features where it meets what elementwise operators make
/// of linear layers' results. Pure and thread-safe; looks at a few operators behind the source.
std::vector<SourceSplit> sourceSplits(const graph::Graph& graph, graph::NodeId source, const StrategyContext& context);

/// True when dimension `dim` of a value is one of attention heads, as above.
bool meansHeads(const graph::Graph& graph, graph::ValueId value, int dim);

}  // namespace cleave::rules
