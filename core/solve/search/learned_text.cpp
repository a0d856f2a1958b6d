#include "solve/search/learned_text.h"

#include "solve/problem/redistribution.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

std::string choiceText(const Choice& choice) {
  if (choice.strategy) {
    const std::string strategy(rules::toText(choice.strategy->strategy));
    return choice.computedAs.empty() ? strategy : fmt::format("{}, {}", strategy, placementText(choice, 0));
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < choice.results.size(); ++i) texts.push_back(placementText(choice, i));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// A rule names only the operator ("`add` needs ..."), so the node's name goes first.
std::string namedReason(const Problem& problem, const Variables& variables, const ConflictRecord& conflict) {
  const std::string name = ticked(nameOf(*problem.graph, conflict.node, variables.layer(conflict.node).has_value()));
  return conflict.reason.starts_with(name) ? conflict.reason : fmt::format("{}: {}", name, conflict.reason);
}

const ConflictRecord* firstWithPin(const std::vector<ConflictRecord>& conflicts, const std::string& pin) {
  const auto found = std::find_if(conflicts.begin(), conflicts.end(), [&](const ConflictRecord& c) {
    return std::find(c.pins.begin(), c.pins.end(), pin) != c.pins.end();
  });
  return found == conflicts.end() ? nullptr : &*found;
}

Constraint pinConstraint(const Problem& problem, const Variables& variables, std::uint32_t index,
                         const std::vector<ConflictRecord>& conflicts) {
  const Pin& pin = problem.pins[index];
  Constraint constraint{.kind = ConstraintKind::Pin, .lift = pin.text};
  if (const ConflictRecord* found = firstWithPin(conflicts, pin.text)) {
    constraint.node = found->node;
    constraint.text =
        fmt::format("The pin {} cannot be satisfied: {}", ticked(pin.text), namedReason(problem, variables, *found));
    return constraint;
  }
  const PinTargets& targets = variables.pinTargets(index);
  if (!targets.layers.empty()) constraint.node = targets.layers.front();
  if (targets.layers.empty() && !targets.values.empty())
    constraint.node = variables.decider(problem.graph->value(targets.values.front()).producer);
  constraint.text = fmt::format("The pin {} removes strategies, and all remaining strategies fail.", ticked(pin.text));
  return constraint;
}

Constraint ruleConstraint(const Problem& problem, const Variables& variables, std::uint32_t index,
                          const std::vector<ConflictRecord>& conflicts) {
  const std::string& pattern = problem.rulesOff[index];
  Constraint constraint{.kind = ConstraintKind::RuleOff, .lift = pattern};
  for (const ConflictRecord& found : conflicts) {
    if (variables.ruleOff(found.node) != index) continue;
    constraint.node = found.node;
    constraint.text = namedReason(problem, variables, found);
    return constraint;
  }
  const auto nodes = nodesWithOperator(pattern, *problem.graph);
  if (!nodes.empty()) constraint.node = nodes.front();
  constraint.text = fmt::format(
      "The rule of {} is switched off, so it needs replicated inputs. No plan gives it these.", ticked(pattern));
  return constraint;
}

}  // namespace

std::string learnedFailureText(const Problem& problem, const Variables& variables, NodeId node,
                               std::span<const Choice* const> choices, const ConflictRecord& origin) {
  const std::string name = ticked(nameOf(*problem.graph, node, variables.layer(node).has_value()));
  const std::string reason = namedReason(problem, variables, origin);
  if (choices.size() == 1) return fmt::format("{} cannot be {} here: {}", name, choiceText(*choices.front()), reason);
  std::vector<std::string> texts;
  for (const Choice* choice : choices) {
    std::string text = choiceText(*choice);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{} cannot be {} here: {}", name, joined(texts, "or"), reason);
}

Core coreOf(const Problem& problem, const Variables& variables, std::span<const Demand> demands,
            const std::vector<ConflictRecord>& conflicts) {
  Core core;
  for (const Demand demand : demands) {
    core.constraints.push_back(demand.isRule ? ruleConstraint(problem, variables, demand.index, conflicts)
                                             : pinConstraint(problem, variables, demand.index, conflicts));
  }
  if (demands.empty() && !conflicts.empty()) {
    const ConflictRecord& found = conflicts.front();
    const bool isLayer = variables.layer(found.node).has_value();
    core.constraints.push_back({.kind = isLayer ? ConstraintKind::CandidateSet : ConstraintKind::Rule,
                                .node = found.node,
                                .value = isLayer || found.culprits.empty() ? ValueId() : found.culprits.back(),
                                .text = namedReason(problem, variables, found)});
  }
  return core;
}

}  // namespace cleave::solve
