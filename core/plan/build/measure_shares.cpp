#include "plan/build/measure_shares.h"

#include "base/checked.h"
#include "graph/layers.h"
#include "graph/op_names.h"
#include "plan/replication/choice_splits.h"
#include "plan/replication/largest_replicated.h"
#include "plan/replication/one_rank_cost.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <map>
#include <set>

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

/// Groups replicated operators: equal modules of repeated blocks are one group.
class Replicated {
 public:
  Replicated(const Graph& graph, const Explanation& explanation) : m_graph(graph), m_explanation(explanation) {}

  void add(NodeId node, const solve::StepCost& cost) {
    const ReplicationReason& why = m_explanation.work(node);
    const std::string pattern = solve::withoutIndices(m_graph.scope(m_graph.node(node).scope).path);
    auto group = std::find_if(m_groups.begin(), m_groups.end(), [&](const Group& g) {
      return g.work.pattern == pattern && g.work.why.index() == why.index();
    });
    if (group == m_groups.end()) {
      group = m_groups.emplace(m_groups.end());
      group->work.pattern = pattern;
    }
    ReplicatedWork& work = group->work;
    ++work.count;
    group->scopes.insert(m_graph.node(node).scope);
    work.flops += cost.flops;
    work.femtoseconds += cost.computeFs;
    group->byOp[std::string(graph::withoutNamespace(m_graph.opName(m_graph.node(node))))] += cost.computeFs;
    if (cost.computeFs > group->mostFs) {
      group->mostFs = cost.computeFs;
      work.first = node;
      work.why = why;
    }
  }

  std::vector<ReplicatedWork> take() && {
    std::vector<ReplicatedWork> all;
    for (Group& group : m_groups) {
      std::vector<std::pair<Femtoseconds, std::string>> ops;
      for (const auto& [op, femtoseconds] : group.byOp) ops.emplace_back(-femtoseconds, op);
      std::sort(ops.begin(), ops.end());
      for (auto& [negated, op] : ops) group.work.ops.push_back(std::move(op));
      group.work.modules = group.scopes.size();
      group.work.modulesLike = static_cast<std::size_t>(std::count_if(
          m_graph.scopes.begin(), m_graph.scopes.end(),
          [&](const graph::Scope& scope) { return solve::withoutIndices(scope.path) == group.work.pattern; }));
      all.push_back(std::move(group.work));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const ReplicatedWork& a, const ReplicatedWork& b) { return a.femtoseconds > b.femtoseconds; });
    return all;
  }

 private:
  struct Group {
    ReplicatedWork work;
    std::map<std::string, Femtoseconds> byOp;
    Femtoseconds mostFs;
    std::set<graph::ScopeId> scopes;
  };
  const Graph& m_graph;
  const Explanation& m_explanation;
  std::vector<Group> m_groups;
};

ReplicationReason whyWhole(const Graph& graph, graph::ValueId parameter, const Explanation& explanation) {
  const NodeId reader = mainReader(graph, parameter);
  if (!reader.isValid()) return NotKnown{};
  const bool isLayer = graph::layerShape(graph, reader).has_value();
  ReplicationReason why = isLayer ? explanation.weight(reader) : explanation.work(reader);
  if (!std::holds_alternative<Split>(why)) return why;
  return Cannot{fmt::format(
      "each rank needs all of it for its part of {}",
      solve::ticked(isLayer ? graph::layerName(graph, reader) : graph.value(graph.node(reader).results.front()).name))};
}

void addWeights(const solve::Problem& problem, const solve::Solution& solution, Shares& shares) {
  const Graph& graph = *problem.graph;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != NodeKind::Parameter) continue;
    const graph::ValueId parameter = node.results[0];
    const auto count = solution.of(parameter).localCount(graph.shapeOf(parameter), shares.ranks);
    shares.weightBytes = saturatingAdd(shares.weightBytes, graph.heldBytes(parameter));
    shares.rankWeightBytes = saturatingAdd(shares.rankWeightBytes, graph.heldBytes(parameter, count));
  }
}

}  // namespace

Shares sharesOf(const solve::Problem& problem, const solve::Solution& solution, const Explanation& explanation) {
  const Graph& graph = *problem.graph;
  Shares shares;
  shares.ranks = problem.context.worldSize;
  shares.layers = solve::countLayers(graph, &solution, shares.ranks);
  shares.flops = costOfReplicated(problem).sum.flops;
  addWeights(problem, solution, shares);
  shares.largestWhole = largestReplicated(problem, solution);
  if (shares.largestWhole) shares.largestWhole->why = whyWhole(graph, shares.largestWhole->first, explanation);
  const solve::Variables variables(problem);
  const auto costs = solve::CostModel(problem, variables).byNode(solution);
  Replicated replicated(graph, explanation);
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const solve::StepCost& cost = costs[node.index()];
    shares.rankFlops += cost.flops;
    shares.computeFs += cost.computeFs;
    if (shares.ranks == 1 || cost.computeFs == 0 ||
        splitsWork(solve::choiceOf(variables, problem, solution, node), shares.ranks))
      continue;
    shares.replicatedFs += cost.computeFs;
    replicated.add(node, cost);
  }
  shares.replicated = std::move(replicated).take();
  return shares;
}

}  // namespace cleave::plan
