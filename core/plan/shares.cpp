#include "plan/shares.h"

#include "base/checked.h"
#include "base/quantities.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "graph/weights.h"
#include "plan/plan.h"
#include "solve/problem/wording.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

constexpr std::size_t kMostOpsNamed = 3;

double partOf(Wide part, Wide whole) {
  return whole <= 0 ? 1 : std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0);
}

/// What a plan saves of what it could: all but one part in `ranks`.
double shareOf(Wide whole, Wide onRank, int ranks) {
  if (ranks <= 1 || whole <= 0) return 0;
  const double kept = static_cast<double>(onRank) / static_cast<double>(whole);
  return std::clamp((1 - kept) / (1 - 1.0 / ranks), 0.0, 1.0);
}

/// Collects what is computed whole, equal modules of repeated blocks together.
class Replicated {
 public:
  Replicated(const Graph& graph, Standings* standings) : m_graph(graph), m_standings(standings) {}

  void add(NodeId node, const solve::StepCost& cost) {
    const Standing why = m_standings ? m_standings->work(node) : Standing(NotKnown{});
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
    if (cost.computeFs > group->dearestFs) {
      group->dearestFs = cost.computeFs;
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
    Femtoseconds dearestFs;
    std::set<graph::ScopeId> scopes;
  };
  const Graph& m_graph;
  Standings* m_standings;
  std::vector<Group> m_groups;
};

/// The first layer that multiplies by the parameter, however it is prepared; else the first operator that reads it.
NodeId readerOf(const Graph& graph, graph::ValueId parameter) {
  constexpr std::size_t kLongestWay = 16;
  std::vector<graph::ValueId> way{parameter};
  for (std::size_t at = 0; at < way.size() && at < kLongestWay; ++at) {
    for (const NodeId user : graph.value(way[at]).users) {
      if (graph::layerShape(graph, user)) return user;
      for (const graph::ValueId made : graph.node(user).results) {
        if (graph::isWeight(graph, made) && std::find(way.begin(), way.end(), made) == way.end()) way.push_back(made);
      }
    }
  }
  const auto& users = graph.value(parameter).users;
  return users.empty() ? NodeId() : users.front();
}

Standing whyWhole(const Graph& graph, graph::ValueId parameter, Standings& standings) {
  const NodeId reader = readerOf(graph, parameter);
  if (!reader.isValid()) return NotKnown{};
  const bool isLayer = graph::layerShape(graph, reader).has_value();
  Standing why = isLayer ? standings.weight(reader) : standings.work(reader);
  if (!std::holds_alternative<Split>(why)) return why;
  return Cannot{fmt::format(
      "each rank needs all of it for its part of {}",
      solve::ticked(isLayer ? graph::layerName(graph, reader) : graph.value(graph.node(reader).results.front()).name))};
}

void addWeights(const solve::Problem& problem, const solve::Solution& solution, Standings* standings, Shares& shares) {
  const Graph& graph = *problem.graph;
  std::map<std::string, WholeWeights> wholeOf;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != NodeKind::Parameter) continue;
    const graph::ValueId parameter = node.results[0];
    const rules::Placement& placement = solution.of(parameter);
    const std::int64_t all = graph.heldBytes(parameter);
    const std::int64_t held = graph.heldBytes(parameter, placement.localCount(graph.shapeOf(parameter), shares.ranks));
    shares.weightBytes = saturatingAdd(shares.weightBytes, all);
    shares.rankWeightBytes = saturatingAdd(shares.rankWeightBytes, held);
    if (shares.ranks == 1 || held < all) continue;
    const std::string& name = graph.value(parameter).name;
    const std::string pattern = solve::withoutIndices(name.substr(0, std::min(name.size(), name.rfind('.'))));
    WholeWeights& whole = wholeOf[pattern];
    whole.pattern = pattern;
    ++whole.count;
    whole.bytes = saturatingAdd(whole.bytes, all);
    if (!whole.first.isValid() || all > graph.heldBytes(whole.first)) whole.first = parameter;
  }
  const auto largest = std::max_element(wholeOf.begin(), wholeOf.end(),
                                        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (largest == wholeOf.end() || largest->second.bytes == 0) return;
  shares.largestWhole = largest->second;
  if (standings) shares.largestWhole->why = whyWhole(graph, shares.largestWhole->first, *standings);
}

bool hasHeads(const ReplicatedWork& work) {
  return std::any_of(work.ops.begin(), work.ops.end(), [](const std::string& op) {
    return graph::operatorOf("aten::" + op).cost == graph::CostClass::Attention;
  });
}

}  // namespace

double Shares::heldWeights() const { return partOf(rankWeightBytes, weightBytes); }
double Shares::computedFlops() const { return partOf(rankFlops, flops); }
double Shares::flopsShare() const { return shareOf(flops, rankFlops, ranks); }
double Shares::weightShare() const { return shareOf(weightBytes, rankWeightBytes, ranks); }

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

std::int64_t unsplitTrainingBytes(const Plan& plan, int replicas) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {1, plan.candidateSet, rules::SequenceParallel::Off};
  problem.cost.profile = plan.costSettings.profile;
  problem.cost.isTraining = true;
  problem.cost.optimizer = plan.costSettings.optimizer;
  const solve::PlanCost cost = costOfReplicated(problem);
  return cost.bytes() + (replicas - 1) * cost.sum.activations;
}

Shares sharesOf(const solve::Problem& problem, const solve::Solution& solution, Standings* standings) {
  const Graph& graph = *problem.graph;
  Shares shares;
  shares.ranks = problem.context.worldSize;
  shares.layers = solve::countLayers(graph, &solution, shares.ranks);
  shares.flops = costOfReplicated(problem).sum.flops;
  addWeights(problem, solution, standings, shares);
  const solve::Variables variables(problem);
  const auto costs = solve::CostModel(problem, variables).byNode(solution);
  Replicated replicated(graph, standings);
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

double shownPercent(double share) {
  if (share <= 0) return 0;
  if (share >= 1) return 100;
  return std::clamp(std::floor(share * 1000) / 10, 0.1, 99.9);
}

std::string percentText(double share) {
  if (share <= 0 || share >= 1) return fmt::format("{:.0f} %", shownPercent(share));
  return fmt::format("{:.1f} %", shownPercent(share));
}

std::string toText(const Shares& shares) {
  if (shares.ranks == 1) return "There is one rank, so there is nothing to split.";
  const solve::LayerCount& count = shares.layers;
  std::string text = fmt::format(
      "Each rank holds {} of the weights and computes {} of the FLOPs (even shares are {}). ",
      percentText(shares.heldWeights()), percentText(shares.computedFlops()), percentText(1.0 / shares.ranks));
  if (count.layers == 0) return text + "No operator with a weight is one that Cleave splits.";
  text += fmt::format("{} of {} {} split", count.split,
                      counted(static_cast<std::int64_t>(count.layers), "layer with weights", "layers with weights"),
                      count.split == 1 || count.layers == 1 ? "is" : "are");
  if (count.gathered > 0)
    text += fmt::format(", {} {} gathered after the product", count.gathered, count.gathered == 1 ? "is" : "are");
  return text + ".";
}

std::string largestWholeText(const Shares& shares) {
  constexpr double kLeastNamed = 0.01;
  if (!shares.largestWhole) return {};
  const WholeWeights& whole = *shares.largestWhole;
  const double share = partOf(whole.bytes, shares.weightBytes);
  if (share < kLeastNamed) return {};
  return fmt::format("Largest part on every rank: {}, {}, {} of the weights: it {}.", solve::ticked(whole.pattern),
                     bytesText(whole.bytes), percentText(share), toText(whole.why));
}

std::string modulesText(const ReplicatedWork& work) {
  if (work.pattern.empty()) return "what is outside of modules";
  return solve::ticked(work.pattern) + (work.modules < work.modulesLike && work.modules > 0
                                            ? fmt::format(" ({} of {})", work.modules, work.modulesLike)
                                            : "");
}

std::string toText(const ReplicatedWork& work) {
  std::vector<std::string> ops(
      work.ops.begin(), work.ops.begin() + static_cast<std::ptrdiff_t>(std::min(work.ops.size(), kMostOpsNamed)));
  const std::string more = work.ops.size() > ops.size() ? ", …" : "";
  return fmt::format("{} ({}: {}{}) takes {} of each rank's step and {}", modulesText(work),
                     counted(static_cast<std::int64_t>(work.count), "operator"), fmt::join(ops, ", "), more,
                     solve::timeText(work.femtoseconds), toText(work.why));
}

std::vector<const ReplicatedWork*> indivisibleHeads(const Shares& shares) {
  std::vector<const ReplicatedWork*> found;
  for (const ReplicatedWork& work : shares.replicated) {
    const auto* setting = std::get_if<NotAskedFor>(&work.why);
    const bool isForced = std::holds_alternative<Cannot>(work.why) || (setting && !setting->changes.empty());
    if (isForced && hasHeads(work)) found.push_back(&work);
  }
  return found;
}

}  // namespace cleave::plan
