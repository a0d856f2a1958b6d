#include "plan/replication/one_rank_cost.h"

#include "graph/layers.h"
#include "solve/engine.h"

namespace cleave::plan {

using graph::Graph;
using graph::NodeId;

solve::PlanCost costOfReplicated(const solve::Problem& problem) {
  solve::Problem one = problem;
  one.context.worldSize = 1;
  const Graph& graph = *one.graph;
  solve::Solution whole;
  whole.placements.resize(graph.values.size());
  whole.strategies.resize(graph.nodes.size());
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (const auto layer = graph::layerShape(graph, node))
      whole.strategies[node.index()] = rules::layerStrategies(graph, node, *layer, one.context).offered.front();
  }
  return solve::costOf(one, whole);
}

}  // namespace cleave::plan
