#include "plan/build/preflight.h"
#include "plan/text/shares_text.h"

#include "graph/layers.h"
#include "graph/weights.h"
#include "plan/text/heads_text.h"
#include "solve/explain/remedy.h"
#include "solve/problem/variables.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <set>

namespace cleave::plan {
namespace {

using rules::LayerStrategy;
using rules::Strategy;

/// Nodes after a layer that are checked for its split result. Heads are formed right after the layer.
constexpr int kMostNodesFollowed = 32;
constexpr int kMostRanks = 64;
/// Split placements that are followed for each value.
constexpr std::size_t kMostPlacements = 12;

bool isSplitStrategy(const LayerStrategy& option, int ranks) {
  return rules::isSplit(option, ranks) || option.strategy == Strategy::Vocab;
}

/// The split placements that each value can have in any plan, starting from the strategies of layers. They are a
/// superset: operands are tried one by one and all together.
class Reach {
 public:
  explicit Reach(const solve::Problem& problem)
      : m_problem(problem), m_graph(*problem.graph), m_splits(m_graph.values.size()) {
    for (NodeId n : idRange<NodeId>(m_graph.nodes.size())) {
      if (m_graph.node(n).kind != graph::NodeKind::Call) continue;
      if (const auto layer = graph::layerShape(m_graph, n)) {
        for (const auto& option : rules::layerStrategies(m_graph, n, *layer, problem.context).offered)
          add(m_graph.node(n).results.front(), option.result);
      } else {
        pass(n);
      }
    }
  }
  bool reaches(ValueId value, const Placement& placement) const {
    const auto& known = m_splits[value.index()];
    return known.size() == kMostPlacements || std::find(known.begin(), known.end(), placement) != known.end();
  }
  bool reaches(NodeId node) const {
    const auto operands = graph::operandsOf(m_graph.node(node));
    return std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return !m_splits[v.index()].empty(); });
  }

 private:
  void add(ValueId value, const Placement& placement) {
    auto& known = m_splits[value.index()];
    if (placement.isSplit() && known.size() < kMostPlacements &&
        std::find(known.begin(), known.end(), placement) == known.end())
      known.push_back(placement);
  }

  void pass(NodeId node) {
    const auto operands = graph::operandsOf(m_graph.node(node));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      for (const Placement& placement : m_splits[operands[i].index()]) {
        std::vector<Placement> alone(operands.size()), alike(operands.size());
        alone[i] = placement;
        for (std::size_t j = 0; j < operands.size(); ++j) {
          const auto& others = m_splits[operands[j].index()];
          if (std::find(others.begin(), others.end(), placement) != others.end()) alike[j] = placement;
        }
        apply(node, alone);
        if (alike != alone) apply(node, alike);
      }
    }
  }

  void apply(NodeId node, const std::vector<Placement>& operands) {
    const auto verdict = rules::applyRule({m_graph, node, operands, m_problem.context.worldSize});
    const auto* claims = std::get_if<std::vector<rules::Claim>>(&verdict);
    if (!claims) return;
    const auto& results = m_graph.node(node).results;
    for (const rules::Claim& claim : *claims) {
      for (std::size_t i = 0; i < results.size(); ++i) add(results[i], claim.results[i]);
    }
  }

  const solve::Problem& m_problem;
  const Graph& m_graph;
  std::vector<std::vector<Placement>> m_splits;  ///< by ValueId
};

/// Builds the Reach on first use.
class ReachOnce {
 public:
  explicit ReachOnce(const solve::Problem& problem) : m_problem(problem) {}
  const Reach* operator->() { return &(m_reach ? *m_reach : m_reach.emplace(m_problem)); }

 private:
  const solve::Problem& m_problem;
  std::optional<Reach> m_reach;
};

std::vector<UnknownOperator> unknownOperators(const solve::Problem& problem, ReachOnce& reach) {
  const Graph& graph = *problem.graph;
  std::vector<UnknownOperator> found;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const graph::Node& node = graph.node(n);
    if (node.kind != graph::NodeKind::Call || graph::layerShape(graph, n) || rules::hasRule(graph.opName(node)))
      continue;
    auto known =
        std::find_if(found.begin(), found.end(), [&](const UnknownOperator& u) { return u.op == graph.opName(node); });
    if (known == found.end()) known = found.insert(found.end(), {.op = graph.opName(node), .first = n});
    ++known->count;
    known->matters = known->matters || reach->reaches(n);
  }
  for (UnknownOperator& unknown : found) {
    const std::string times = unknown.count == 1 ? "" : fmt::format(" ({} times)", unknown.count);
    unknown.text = unknown.matters
                       ? fmt::format(
                             "`{}`{} has no rule, so its inputs must be replicated. Layers before it cannot pass it "
                             "a split result.",
                             unknown.op, times)
                       : fmt::format("`{}`{} has no rule. Only replicated tensors reach it, so this costs nothing.",
                                     unknown.op, times);
  }
  return found;
}

/// Finds layers whose split result fails only because of sizes: follows it through nodes with no other split operand,
/// to a node that refuses it for this number of ranks, but not for others.
class Heads {
 public:
  explicit Heads(const solve::Problem& problem) : m_problem(problem), m_graph(*problem.graph) {}

  /// The refusal as a clause with numbers; empty if no operator nearby refuses the placement.
  std::string refusalOf(ValueId value, const Placement& placement) const {
    std::vector<std::pair<ValueId, Placement>> open{{value, placement}};
    for (std::size_t at = 0; at < open.size() && at < kMostNodesFollowed; ++at) {
      for (NodeId user : m_graph.value(open[at].first).users) {
        const auto [carried, placed] = open[at];
        if (graph::layerShape(m_graph, user)) continue;
        const auto verdict = verdictOn(user, carried, placed, m_problem.context.worldSize);
        if (const auto* claims = std::get_if<std::vector<rules::Claim>>(&verdict)) {
          const auto& results = m_graph.node(user).results;
          for (std::size_t i = 0; i < results.size() && !claims->empty(); ++i) {
            if (claims->front().results[i].isSplit()) open.emplace_back(results[i], claims->front().results[i]);
          }
        } else if (readsOnly(carried, user) && fitsOtherRanks(user, carried, placed)) {
          return refusalText(user, std::get<rules::Conflict>(verdict).reason);
        }
      }
    }
    return {};
  }

 private:
  rules::Verdict verdictOn(NodeId node, ValueId carried, const Placement& placement, int ranks) const {
    std::vector<Placement> operands;
    for (ValueId v : graph::operandsOf(m_graph.node(node))) operands.push_back(v == carried ? placement : Placement());
    return rules::applyRule({m_graph, node, operands, ranks});
  }

  /// Other operands could have other placements, so their refusals do not prove that sizes are the cause.
  bool readsOnly(ValueId carried, NodeId node) const {
    const auto operands = graph::operandsOf(m_graph.node(node));
    return std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return v == carried; });
  }

  bool fitsOtherRanks(NodeId node, ValueId carried, const Placement& placement) const {
    for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
      if (ranks != m_problem.context.worldSize &&
          std::holds_alternative<std::vector<rules::Claim>>(verdictOn(node, carried, placement, ranks)))
        return true;
    }
    return false;
  }

  std::string refusalText(NodeId node, std::string reason) const {
    while (!reason.empty() && reason.back() == '.') reason.pop_back();
    return fmt::format("its result does not divide at `{}`: {}", m_graph.value(m_graph.node(node).results.front()).name,
                       reason);
  }

  const solve::Problem& m_problem;
  const Graph& m_graph;
};

/// The sizes that keep every strategy from splitting the layer; empty if a strategy splits it, or if sizes are not the
/// reason.
std::string whyIndivisible(const solve::Problem& problem, NodeId node, const graph::LayerShape& layer,
                           ReachOnce& reach) {
  const auto options = rules::layerStrategies(*problem.graph, node, layer, problem.context);
  std::string reason;
  for (const LayerStrategy& option : options.offered) {
    if (!isSplitStrategy(option, problem.context.worldSize)) continue;
    if (option.input.isSplit()) {
      if (reach->reaches(layer.input, option.input)) return {};
      continue;
    }
    const std::string refusal = Heads(problem).refusalOf(problem.graph->node(node).results.front(), option.result);
    if (refusal.empty()) return {};
    if (reason.empty()) reason = refusal;
  }
  if (!reason.empty()) return reason;
  return options.refused.empty() ? std::string() : options.refused.front().reason;
}

/// The group of `pattern`. A new group is appended, so groups are in graph order.
template <class Group>
Group& groupFor(std::vector<Group>& groups, std::string pattern, NodeId first) {
  const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.pattern == pattern; });
  if (known != groups.end()) return *known;
  Group& group = groups.emplace_back();
  group.pattern = std::move(pattern);
  group.first = first;
  return group;
}

void addLayer(const solve::Problem& problem, NodeId node, const graph::LayerShape& layer, Preflight& found,
              std::set<std::uint32_t>& counted, ReachOnce& reach) {
  const Graph& graph = *problem.graph;
  const std::string pattern = solve::withoutIndices(graph::layerName(graph, node));
  const std::string why = whyIndivisible(problem, node, layer, reach);
  const auto options = rules::layerStrategies(graph, node, layer, problem.context).offered;
  const auto splits = [&](const LayerStrategy& o) { return isSplitStrategy(o, problem.context.worldSize); };
  const bool hasSplitStrategy = std::any_of(options.begin(), options.end(), splits);
  const std::int64_t bytes =
      graph::parameterBytes(graph, layer.weight) + (layer.down.isValid() ? graph.heldBytes(layer.down) : 0);
  found.unsplitLayers += !why.empty() || !hasSplitStrategy;
  if (!why.empty()) {
    IndivisibleLayers& group = groupFor(found.indivisible, pattern, node);
    if (group.count++ == 0) group.reason = why;
    group.bytes += bytes;
  }
  const bool isWhole =
      layer.weight.isValid() &&
      (!hasSplitStrategy || (!why.empty() && std::none_of(options.begin(), options.end(), [&](const LayerStrategy& o) {
        return splits(o) && o.input.isSplit();
      })));
  if (!isWhole || !counted.insert(layer.weight.raw()).second) return;
  ReplicatedWeights& group = groupFor(found.replicated, pattern, node);
  if (group.count++ == 0) group.why = why.empty() ? "the candidate set has no strategy that splits it" : why;
  group.bytes += bytes;
}

/// For a parameter that is not the weight of a layer. It is replicated, because only layers split parameters.
void addOtherParameter(const Graph& graph, NodeId node, Preflight& found) {
  const ValueId value = graph.node(node).results.front();
  const auto& users = graph.value(value).users;
  ReplicatedWeights& group = groupFor(found.replicated, solve::withoutIndices(graph.value(value).name), node);
  if (group.count++ == 0) {
    group.why = users.empty() ? "no operator reads it"
                              : fmt::format("its reader `{}` is not a layer, so every rank needs all of it",
                                            graph.value(graph.node(users.front()).results.front()).name);
  }
  group.bytes += graph.heldBytes(value);
}

/// Attention whose heads do not divide, with equal modules together. With the full candidate set, ranks may share KV
/// heads.
std::vector<IndivisibleHeads> indivisibleHeads(const solve::Problem& problem) {
  const Graph& graph = *problem.graph;
  const int ranks = problem.context.worldSize;
  std::vector<IndivisibleHeads> groups;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const auto heads = graph::headsOf(graph, n);
    const std::string refusal = heads ? headsText(*heads, ranks) : std::string();
    if (refusal.empty()) continue;
    IndivisibleHeads& group = groupFor(groups, solve::withoutIndices(graph.scope(graph.node(n).scope).path), n);
    if (group.count++ > 0) continue;
    group.heads = *heads;
    group.text = sharesKvHeads(*heads, problem.context)
                     ? fmt::format("{}: {} ranks share each head.", refusal, ranks / heads->keyValue)
                     : fmt::format("{}: without redistribution, every rank computes all of this attention.", refusal);
  }
  return groups;
}

}  // namespace

Preflight preflight(const solve::Problem& problem) {
  Preflight found;
  ReachOnce reach(problem);
  found.unknownOperators = unknownOperators(problem, reach);
  if (problem.context.worldSize <= 1) return found;
  found.heads = indivisibleHeads(problem);
  const Graph& graph = *problem.graph;
  const solve::Variables variables(problem);
  std::set<std::uint32_t> counted;  // counts tied weights once
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    if (const auto& layer = variables.layer(n)) {
      addLayer(problem, n, *layer, found, counted, reach);
    } else if (graph.node(n).kind == graph::NodeKind::Parameter && variables.isStep(n)) {
      if (counted.insert(graph.node(n).results.front().raw()).second) addOtherParameter(graph, n, found);
    }
  }
  for (const ReplicatedWeights& group : found.replicated) found.replicatedBytes += group.bytes;
  return found;
}

std::vector<std::string> passedChecks(const Preflight& report, int ranks) {
  std::vector<std::string> clauses;
  if (report.unknownOperators.empty()) clauses.emplace_back("every operator has a rule");
  if (ranks == 1)
    clauses.emplace_back("there is nothing to split");
  else if (report.unsplitLayers == 0)
    clauses.emplace_back("every layer has a strategy that splits it");
  return clauses;
}

}  // namespace cleave::plan
