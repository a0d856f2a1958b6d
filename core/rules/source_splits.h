#pragma once
/// Sources that may be split from the start, besides the parameters that layers own. Some are parameters from which a
/// layer's weight is computed (weight_splits.h). Others are parameters and constants with values for each attention
/// head (sinks, ALiBi slopes, norms with weights per head) or for each output feature of a linear layer (a separate
/// bias, a scale). Each rank needs only its own part of them. Caches of keys and values (graph/states.h) are split too:
/// a rank needs the part of its own heads.
#include "graph/graph.h"
#include "rules/placement.h"
#include "rules/strategy_context.h"

#include <string>
#include <vector>

namespace cleave::rules {

struct SourceSplit {
  Placement placement;
  std::string reason;  ///< "the values of 4 of 8 heads on each rank"
};

/// The possible splits of such a source besides replicated, best first; empty for all others. The candidate set Optimum
/// splits only weights and caches. Pure and thread-safe. Looks at a few operators after the source (dim_meaning.h).
std::vector<SourceSplit> sourceSplits(const graph::Graph& graph, graph::NodeId source, const StrategyContext& context);

}  // namespace cleave::rules
