#include "plan/replication/why_replicated.h"
#include "plan/replication/choice_splits.h"

#include "plan/text/heads_text.h"

#include "graph/layers.h"
#include "graph/weights.h"
#include "rules/source_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

/// Explains a replicated layer by its alternatives: applies each split strategy, and follows it through the rules, with
/// everything else as in the solution, until a node refuses it.

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using rules::LayerStrategy;
using rules::Placement;
using rules::Strategy;

/// The limit of nodes that a strategy is followed through. The node that refuses it is in the same block.
constexpr int kMaxNodesFollowed = 64;

class Consequences {
 public:
  Consequences(const solve::Problem& problem, const solve::Solution& solution)
      : m_problem(problem), m_graph(*problem.graph), m_solution(solution) {}

  /// The first refusal if `value` is placed as `placement`; empty if no node refuses.
  std::string ofPlacing(ValueId value, const Placement& placement) {
    m_changed[value] = placement;
    visitUsers(value);
    for (int followed = 0; !m_open.empty() && followed < kMaxNodesFollowed; ++followed) {
      const NodeId node = *std::min_element(m_open.begin(), m_open.end());
      std::erase(m_open, node);
      if (std::string refusal = visit(node); !refusal.empty()) return refusal;
    }
    return {};
  }

 private:
  const Placement& of(ValueId value) const {
    const auto changed = m_changed.find(value);
    return changed != m_changed.end() ? changed->second : m_solution.of(value);
  }

  void visitUsers(ValueId value) {
    for (NodeId user : m_graph.value(value).users) {
      if (std::find(m_open.begin(), m_open.end(), user) == m_open.end()) m_open.push_back(user);
    }
  }

  std::string visit(NodeId id) {
    const graph::Node& node = m_graph.node(id);
    if (const auto layer = graph::layerShape(m_graph, id)) return visitLayer(id, *layer);
    std::vector<Placement> operands;
    for (ValueId operand : graph::operandsOf(node)) operands.push_back(of(operand));
    const auto verdict = rules::applyRule({m_graph, id, operands, m_problem.context.worldSize});
    if (const auto* conflict = std::get_if<rules::Conflict>(&verdict)) {
      if (!readsOnlyWhatFollows(node)) return {};
      return fmt::format("{} could not be computed: {}", m_graph.value(node.results[0]).name, conflict->reason);
    }
    const auto& claims = std::get<std::vector<rules::Claim>>(verdict);
    if (claims.empty()) return {};
    const auto asSolved = std::find_if(claims.begin(), claims.end(), [&](const rules::Claim& claim) {
      return std::equal(node.results.begin(), node.results.end(), claim.results.begin(), claim.results.end(),
                        [&](ValueId result, const Placement& p) { return m_solution.computed(result) == p; });
    });
    if (asSolved != claims.end()) return {};
    for (std::size_t i = 0; i < node.results.size() && i < claims.front().results.size(); ++i) {
      m_changed[node.results[i]] = claims.front().results[i];
      visitUsers(node.results[i]);
    }
    return {};
  }

  /// A refusal is a reason only if no other operand could be placed differently in another plan.
  bool readsOnlyWhatFollows(const graph::Node& node) const {
    const auto operands = graph::operandsOf(node);
    return std::all_of(operands.begin(), operands.end(), [&](ValueId operand) {
      return m_changed.contains(operand) ||
             m_graph.node(m_graph.value(operand).producer).kind != graph::NodeKind::Call || isReplicatedAnyhow(operand);
    });
  }

  /// Computed from parameters that cannot be split.
  bool isReplicatedAnyhow(ValueId value) const {
    if (!graph::isComputedFromSources(m_graph, value)) return false;
    const auto parameters = graph::parametersOf(m_graph, value);
    return std::all_of(parameters.begin(), parameters.end(), [&](ValueId parameter) {
      return rules::sourceSplits(m_graph, m_graph.value(parameter).producer, m_problem.context).empty();
    });
  }

  std::string visitLayer(NodeId id, const graph::LayerShape& layer) {
    const Placement& input = of(layer.input);
    const auto options = rules::layerStrategies(m_graph, id, layer, m_problem.context);
    const bool acceptsIt = std::any_of(options.offered.begin(), options.offered.end(),
                                       [&](const LayerStrategy& option) { return option.input == input; });
    if (acceptsIt) return {};
    std::string reason =
        fmt::format("{} has no strategy for an input that is {}", graph::layerName(m_graph, id), input.text());
    for (const rules::Refusal& refusal : options.refused) {
      if (reason.find(refusal.reason) == std::string::npos) reason += fmt::format("; {}", refusal.reason);
    }
    return reason;
  }

  const solve::Problem& m_problem;
  const Graph& m_graph;
  const solve::Solution& m_solution;
  std::unordered_map<ValueId, Placement> m_changed;
  std::vector<NodeId> m_open;
};

std::string withoutFullStop(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

/// The refusal of a split of the parameters that a weight is computed from; empty if no split is refused.
std::string refusedBeforeWeight(const solve::Problem& problem, const solve::Solution& solution,
                                const std::vector<ValueId>& parameters) {
  const Graph& graph = *problem.graph;
  for (const ValueId parameter : parameters) {
    for (const auto& split : rules::sourceSplits(graph, graph.value(parameter).producer, problem.context)) {
      const std::string refusal = Consequences(problem, solution).ofPlacing(parameter, split.placement);
      if (!refusal.empty())
        return withoutFullStop(fmt::format("its weight is computed from `{}`: if that is {}, {}",
                                           graph.value(parameter).name, split.placement.text(), refusal));
    }
  }
  return {};
}

/// Why no split of its parameters splits a weight that is computed from them; empty if one does, or if the weight is a
/// parameter.
std::string whyNotPrepared(const solve::Problem& problem, const solve::Solution& solution, ValueId weight) {
  const Graph& graph = *problem.graph;
  if (!weight.isValid() || graph::isParameter(graph, weight)) return {};
  const std::vector<ValueId> parameters = graph::parametersOf(graph, weight);
  const auto hasSplit = [&](ValueId parameter) {
    return !rules::sourceSplits(graph, graph.value(parameter).producer, problem.context).empty();
  };
  if (parameters.empty() || std::any_of(parameters.begin(), parameters.end(), hasSplit))
    return refusedBeforeWeight(problem, solution, parameters);
  const std::string from = fmt::format("its weight is computed from `{}`", graph.value(parameters.front()).name);
  for (const NodeId user : graph.value(parameters.front()).users) {
    if (!rules::hasRule(graph.opName(graph.node(user))))
      return fmt::format("{}, and there is {}", from, rules::noRule(graph, user));
  }
  return from + ", and no split of it splits the weight";
}

}  // namespace

WhyReplicated::WhyReplicated(const solve::Problem& problem, const solve::Solution& solution)
    : m_problem(problem), m_solution(solution), m_variables(problem) {
  for (const solve::Pin& pin : problem.pins) m_targets.push_back(solve::targetsOf(pin, *problem.graph));
}

std::vector<std::string> WhyReplicated::demanded(NodeId layer) const {
  const auto isSplit = [](Strategy strategy) { return rules::axisOf(strategy) != "replicated"; };
  const auto& results = m_problem.graph->node(layer).results;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < m_targets.size(); ++i) {
    const solve::Pin& pin = m_problem.pins[i];
    const bool isMeant = std::binary_search(m_targets[i].layers.begin(), m_targets[i].layers.end(), layer) ||
                         std::any_of(results.begin(), results.end(), [&](ValueId result) {
                           return std::binary_search(m_targets[i].values.begin(), m_targets[i].values.end(), result);
                         });
    const bool namesSplit =
        pin.placement ? pin.placement->isSplit() : std::any_of(pin.strategies.begin(), pin.strategies.end(), isSplit);
    if (isMeant && pin.forbids == namesSplit) texts.push_back(pin.text);
  }
  return texts;
}

std::string WhyReplicated::ofLayer(NodeId node) const {
  const Graph& graph = *m_problem.graph;
  const auto layer = graph::layerShape(graph, node);
  const ValueId result = graph.node(node).results[0];
  const auto options = rules::layerStrategies(graph, node, *layer, m_problem.context);
  for (const LayerStrategy& option : options.offered) {
    if (!splitsWeight({.strategy = option}, m_problem.context.worldSize) || option.input != m_solution.of(layer->input))
      continue;
    const std::string refusal = Consequences(m_problem, m_solution).ofPlacing(result, option.result);
    if (!refusal.empty())
      return withoutFullStop(
          fmt::format("{} is possible for this layer alone, but {}", rules::toText(option.strategy), refusal));
  }
  std::string reason;
  for (const rules::Refusal& refusal : options.refused) {
    if (reason.find(refusal.reason) == std::string::npos)
      reason += (reason.empty() ? "" : "; ") + withoutFullStop(refusal.reason);
  }
  if (!reason.empty()) return reason;
  if (std::string why = whyNotPrepared(m_problem, m_solution, layer->weight); !why.empty()) return why;
  const Placement& input = m_solution.of(layer->input);
  if (input.isReplicated() && layer->kind == graph::LayerKind::CrossEntropy) return "its logits are replicated";
  return fmt::format("its input is {}, and no split strategy for that input fits the operators after it", input.text());
}

std::string WhyReplicated::of(NodeId node, Part part) {
  if (std::string heads = ofHeads(node); !heads.empty()) return heads;
  if (part == Part::Weight || m_variables.layer(node)) return ofLayer(node);
  const graph::Node& call = m_problem.graph->node(node);
  if (call.kind == graph::NodeKind::Call && !rules::hasRule(m_problem.graph->opName(call)))
    return fmt::format("there is {}, so its tensors are replicated", rules::noRule(*m_problem.graph, node));
  const std::string& onSequence = ofSequence();
  return "the placements before and after its operators allow no split" +
         (onSequence.empty() ? "" : fmt::format("; sequence parallelism does not help, because {}", onSequence));
}

const std::string& WhyReplicated::ofSequence() {
  if (m_ofSequence) return *m_ofSequence;
  m_ofSequence.emplace();
  rules::StrategyContext context = m_problem.context;
  context.sequenceParallel = rules::SequenceParallel::On;
  std::string refusal;
  for (NodeId node : idRange<NodeId>(m_problem.graph->nodes.size())) {
    const auto& layer = m_variables.layer(node);
    if (!layer) continue;
    const auto isOnSequence = [](const auto& form) { return form.strategy == Strategy::ReplicatedOnSequence; };
    const rules::LayerStrategies options = rules::layerStrategies(*m_problem.graph, node, *layer, context);
    if (std::any_of(options.offered.begin(), options.offered.end(), isOnSequence)) return *m_ofSequence;
    const auto refused = std::find_if(options.refused.begin(), options.refused.end(), isOnSequence);
    if (refused != options.refused.end() && refusal.empty()) refusal = refused->reason;
  }
  return *(m_ofSequence = std::move(refusal));
}

std::string WhyReplicated::ofHeads(NodeId node) {
  const Graph& graph = *m_problem.graph;
  graph::ScopeId scope = graph.node(node).scope;
  while (scope.isValid()) {
    if (const auto found = headsByModule().find(graph.scope(scope).path); found != headsByModule().end())
      return found->second;
    const graph::ScopeId parent = graph.scope(scope).parent;
    const bool isOuter = parent.isValid() && !graph.scope(parent).path.empty();
    scope = m_variables.layer(node) && isOuter ? parent : graph::ScopeId();
  }
  return {};
}

const std::unordered_map<std::string, std::string>& WhyReplicated::headsByModule() {
  if (m_headsByModule) return *m_headsByModule;
  m_headsByModule.emplace();
  const Graph& graph = *m_problem.graph;
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto heads = graph::headsOf(graph, node);
    if (heads && !sharesKvHeads(*heads, m_problem.context))
      m_headsByModule->try_emplace(graph.scope(graph.node(node).scope).path,
                                   headsText(*heads, m_problem.context.worldSize));
  }
  return *m_headsByModule;
}

}  // namespace cleave::plan
