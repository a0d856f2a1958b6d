#include "solve/checker.h"

#include "base/quantities.h"
#include "base/wildcard.h"
#include "rules/source_splits.h"
#include "solve/cost/cost_model.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using graph::LayerShape;
using rules::LayerStrategy;

constexpr std::size_t kMostViolations = 32;

class Checker {
 public:
  Checker(const Problem& problem, const Solution& solution)
      : m_problem(problem), m_graph(*problem.graph), m_solution(solution) {}

  std::vector<std::string> run() {
    if (m_solution.placements.size() != m_graph.values.size() || m_solution.strategies.size() != m_graph.nodes.size()) {
      report("The solution has {} placements and {} strategies for a graph of {} values and {} nodes.",
             m_solution.placements.size(), m_solution.strategies.size(), m_graph.values.size(), m_graph.nodes.size());
      return std::move(m_violations);
    }
    for (ValueId v : idRange<ValueId>(m_graph.values.size())) checkSizes(v);
    for (NodeId n : idRange<NodeId>(m_graph.nodes.size())) checkNode(n);
    for (const Pin& pin : m_problem.pins) checkPin(pin);
    for (const auto& [value, computed] : m_solution.computedAs) checkRedistribution(value, computed);
    // Only a valid solution has a cost.
    if (m_violations.empty()) checkBudget();
    return std::move(m_violations);
  }

  std::vector<std::string> run(NodeId node) {
    for (const ValueId result : m_graph.node(node).results) {
      checkSizes(result);
      const auto computed = m_solution.computedAs.find(result);
      if (computed != m_solution.computedAs.end()) checkRedistribution(result, computed->second);
    }
    checkNode(node);
    return std::move(m_violations);
  }

 private:
  template <class... Args>
  void report(fmt::format_string<Args...> text, Args&&... args) {
    if (m_violations.size() < kMostViolations) m_violations.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  const std::string& name(ValueId v) const { return m_graph.value(v).name; }
  bool isRuleOff(const graph::Node& node) const {
    return std::any_of(m_problem.rulesOff.begin(), m_problem.rulesOff.end(),
                       [&](const std::string& pattern) { return matchesWildcard(pattern, m_graph.opName(node)); });
  }

  /// The patterns are resolved once for all values.
  bool mayRedistribute(ValueId v) {
    if (m_mayRedistribute.empty()) {
      m_mayRedistribute.assign(m_graph.values.size(), false);
      for (const std::string& pattern : m_problem.redistributable) {
        for (const ValueId allowed : redistributableValues(pattern, m_graph)) m_mayRedistribute[allowed.index()] = true;
      }
    }
    return m_mayRedistribute[v.index()];
  }

  void checkRedistribution(ValueId v, const Placement& from) {
    if (v.index() >= m_graph.values.size())
      return report("The solution redistributes a value that the graph does not have.");
    const Placement& to = m_solution.of(v);
    if (!mayRedistribute(v))
      report("`{}` is computed as {} and read as {}, but its redistribution is not allowed.", name(v), from.text(),
             to.text());
    const bool isGather = from.isPlainSplit() && to.isReplicated();
    const bool isCut = from.isReplicated() && to.isPlainSplit();
    if (!isGather && !isCut) {
      report("`{}` cannot be redistributed from {} to {}: only an even split can be gathered, and only R can be cut.",
             name(v), from.text(), to.text());
    }
    if (!from.isReplicated() && !from.localShape(m_graph.shapeOf(v), m_problem.context.worldSize)) {
      report("`{}` {} cannot be computed as {}: {}.", name(v), graph::toText(m_graph.shapeOf(v)), from.text(),
             from.whyNotDivisible(m_graph.shapeOf(v), m_problem.context.worldSize));
    }
  }
  std::string text(ValueId v) const { return m_solution.of(v).text(); }

  void checkSizes(ValueId v) {
    const Placement& placement = m_solution.of(v);
    const int ranks = m_problem.context.worldSize;
    if (placement.isReplicated() || placement.localShape(m_graph.shapeOf(v), ranks)) return;
    report("`{}` {} cannot be {}: {}.", name(v), graph::toText(m_graph.shapeOf(v)), placement.text(),
           placement.whyNotDivisible(m_graph.shapeOf(v), ranks));
  }

  void checkNode(NodeId n) {
    const graph::Node& node = m_graph.node(n);
    if (const auto layer = graph::layerShape(m_graph, n)) return checkLayer(n, *layer);
    if (m_solution.strategies[n.index()]) report("`{}` is not a layer but has a strategy.", name(node.results.front()));
    switch (node.kind) {
      case graph::NodeKind::Call: return checkCall(n);
      case graph::NodeKind::Parameter: return checkParameter(n, node.results.front());
      case graph::NodeKind::Input:
      case graph::NodeKind::Constant:
        if (isHeadwise(n, node.results.front())) return;
        [[fallthrough]];
      default:
        if (!m_solution.computed(node.results.front()).isReplicated()) {
          report("`{}` is an input or a constant, so it must be replicated, but it is {} in the solution.",
                 name(node.results.front()), text(node.results.front()));
        }
    }
  }

  /// True if the source has a part per head and is split by heads.
  bool isHeadwise(NodeId source, ValueId value) const {
    const auto splits = rules::sourceSplits(m_graph, source, m_problem.context);
    return std::any_of(splits.begin(), splits.end(),
                       [&](const rules::SourceSplit& split) { return split.placement == m_solution.computed(value); });
  }

  /// Only layers may split a parameter. If another operator reads it, each rank needs all of it or the part of its
  /// heads.
  void checkParameter(NodeId source, ValueId parameter) {
    if (m_solution.of(parameter).isReplicated() || isHeadwise(source, parameter)) return;
    bool isOutput = false;
    for (const auto& output : m_graph.outputs) isOutput |= output.value == parameter;
    if (isOutput) report("The parameter `{}` is an output of the graph but is {}.", name(parameter), text(parameter));
    const auto& users = m_graph.value(parameter).users;
    if (users.empty()) report("The parameter `{}` has no user but is {}.", name(parameter), text(parameter));
    for (NodeId user : users) {
      const auto layer = graph::layerShape(m_graph, user);
      std::size_t asParameter = 0;
      if (layer) asParameter = (layer->weight == parameter) + (layer->bias == parameter) + (layer->down == parameter);
      const auto operands = graph::operandsOf(m_graph.node(user));
      if (static_cast<std::size_t>(std::count(operands.begin(), operands.end(), parameter)) != asParameter) {
        report("The parameter `{}` is {}, but `{}` reads it as an ordinary tensor and needs it replicated.",
               name(parameter), text(parameter), name(m_graph.node(user).results.front()));
      }
    }
  }

  void checkCall(NodeId n) {
    const graph::Node& node = m_graph.node(n);
    std::vector<Placement> operands;
    for (ValueId v : graph::operandsOf(node)) operands.push_back(m_solution.of(v));
    std::vector<Placement> results;
    for (ValueId v : node.results) results.push_back(m_solution.computed(v));
    if (isRuleOff(node)) return checkReplicated(node, operands, results);
    const auto verdict = rules::applyRule({m_graph, n, operands, m_problem.context.worldSize});
    const std::string label = node.results.empty() ? m_graph.opName(node) : name(node.results.front());
    if (const auto* conflict = std::get_if<rules::Conflict>(&verdict)) {
      report("`{}` cannot be computed from its inputs as they are placed: {}", label, conflict->reason);
      return;
    }
    const auto& claims = std::get<std::vector<rules::Claim>>(verdict);
    const bool isClaimed =
        std::any_of(claims.begin(), claims.end(), [&](const rules::Claim& c) { return c.results == results; });
    if (!isClaimed)
      report("`{}` is {} in the solution, but no rule of {} gives that for its inputs.", label, listed(results),
             m_graph.opName(node));
  }

  /// Checks an operator whose rule is switched off.
  void checkReplicated(const graph::Node& node, const std::vector<Placement>& operands,
                       const std::vector<Placement>& results) {
    for (const auto* list : {&operands, &results}) {
      for (const Placement& p : *list) {
        if (p.isReplicated()) continue;
        report("The rule of {} is switched off, so all its values must be replicated, but one is {}.",
               m_graph.opName(node), p.text());
        return;
      }
    }
  }

  static std::string listed(const std::vector<Placement>& placements) {
    std::vector<std::string> texts;
    for (const Placement& p : placements) texts.push_back(p.text());
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  void checkLayer(NodeId n, const LayerShape& layer) {
    const std::string label = graph::layerName(m_graph, n);
    const auto& chosen = m_solution.strategies[n.index()];
    if (!chosen) return report("The layer `{}` has no strategy.", label);
    const bool isOff = isRuleOff(m_graph.node(n));
    const auto options =
        isOff ? std::vector<LayerStrategy>(1) : rules::layerStrategies(m_graph, n, layer, m_problem.context).offered;
    const bool isOffered = std::any_of(options.begin(), options.end(), [&](const LayerStrategy& o) {
      return o.strategy == chosen->strategy && o.input == chosen->input && o.weight == chosen->weight &&
             o.bias == chosen->bias && o.down == chosen->down && o.result == chosen->result &&
             o.before == chosen->before && o.after == chosen->after;
    });
    if (!isOffered)
      report("The layer `{}` cannot be {} here: {}.", label, rules::toText(chosen->strategy),
             isOff ? "its rule is switched off, so it is replicated" : "the sizes or the candidate set forbid it");
    expect(label, *chosen, layer.input, chosen->input, "input");
    expect(label, *chosen, layer.weight, chosen->weight, "weight");
    expect(label, *chosen, layer.bias, chosen->bias, "bias");
    expect(label, *chosen, layer.down, chosen->down.value_or(Placement()), "weight");
    expect(label, *chosen, layer.target, Placement(), layer.kind == graph::LayerKind::Experts ? "routing" : "labels");
    expect(label, *chosen, layer.shares, Placement(), "routing");
    const ValueId result = m_graph.node(n).results.front();
    if (m_solution.computed(result) != chosen->result) {
      report("The layer `{}` is {}, so its result `{}` must be computed as {}, but it is {}.", label,
             rules::toText(chosen->strategy), name(result), chosen->result.text(), m_solution.computed(result).text());
    }
  }

  void expect(const std::string& label, const LayerStrategy& chosen, ValueId v, const Placement& wanted,
              std::string_view role) {
    if (!v.isValid() || m_solution.of(v) == wanted) return;
    report("The layer `{}` is {}, so its {} `{}` must be {}, but it is {}.", label, rules::toText(chosen.strategy),
           role, name(v), wanted.text(), text(v));
  }

  void checkBudget() {
    const std::int64_t needed = costOf(m_problem, m_solution).bytes(), budget = m_problem.cost.budgetBytes();
    if (needed > budget) {
      report("The plan needs {} per rank, {} more than {}.", bytesText(needed), bytesText(needed - budget),
             budgetName(m_problem.cost));
    }
  }

  void checkPin(const Pin& pin) {
    const PinTargets targets = targetsOf(pin, m_graph);
    for (NodeId n : targets.layers) {
      const auto& chosen = m_solution.strategies[n.index()];
      const bool has =
          chosen && std::find(pin.strategies.begin(), pin.strategies.end(),
                              effectiveStrategy(*chosen, m_problem.context.worldSize)) != pin.strategies.end();
      if (has == pin.forbids) {
        report("The layer `{}` is {}, which violates the pin `{}`.", graph::layerName(m_graph, n),
               chosen ? rules::toText(effectiveStrategy(*chosen, m_problem.context.worldSize)) : "without a strategy",
               pin.text);
      }
    }
    for (ValueId v : targets.values) {
      if (!pin.admits(m_solution.of(v), m_problem.context.worldSize))
        report("`{}` is {}, which violates the pin `{}`.", name(v), text(v), pin.text);
    }
  }

  const Problem& m_problem;
  const Graph& m_graph;
  const Solution& m_solution;
  std::vector<bool> m_mayRedistribute;  ///< by ValueId; filled at the first use
  std::vector<std::string> m_violations;
};

}  // namespace

std::vector<std::string> check(const Problem& problem, const Solution& solution) {
  return Checker(problem, solution).run();
}

std::vector<std::string> checkNode(const Problem& problem, const Solution& solution, NodeId node) {
  return Checker(problem, solution).run(node);
}

}  // namespace cleave::solve
