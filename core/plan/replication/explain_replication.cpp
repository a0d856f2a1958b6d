#include "plan/replication/explain_replication.h"

#include "graph/layers.h"
#include "plan/replication/choice_splits.h"
#include "plan/replication/largest_replicated.h"
#include "plan/replication/replication_search.h"
#include "solve/cost/cost_model.h"

namespace cleave::plan {

using graph::Graph;
using graph::NodeId;

const ReplicationReason& Explanation::of(const Reasons& reasons, NodeId node) {
  static const ReplicationReason kNotKnown = NotKnown{};
  const auto found = reasons.find(node.raw());
  return found == reasons.end() ? kNotKnown : found->second;
}

Explanation explainReplication(const solve::Problem& problem, const solve::Solution& solution, solve::Engine engine,
                               const solve::Optimum* optimum, const Progress& progress) {
  const Graph& graph = *problem.graph;
  Explanation explanation;
  ReplicationSearch search(problem, solution, engine, optimum, progress);
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (solution.strategies[node.index()]) explanation.setWeight(node, search.weight(node));
  }
  if (const auto largest = largestReplicated(problem, solution)) {
    const NodeId reader = mainReader(graph, largest->first);
    if (reader.isValid() && !graph::layerShape(graph, reader)) explanation.setWork(reader, search.work(reader));
  }
  const int ranks = problem.context.worldSize;
  if (ranks == 1) return explanation;
  const solve::Variables variables(problem);
  const auto costs = solve::CostModel(problem, variables).byNode(solution);
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (costs[node.index()].computeFs == 0 || splitsWork(solve::choiceOf(variables, problem, solution, node), ranks))
      continue;
    explanation.setWork(node, search.work(node));
  }
  return explanation;
}

}  // namespace cleave::plan
