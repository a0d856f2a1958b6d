#include "solve/proof/choices.h"

#include "rules/source_splits.h"
#include "solve/problem/redistribution.h"
#include "solve/problem/strategy_text.h"

#include <algorithm>

namespace cleave::solve {
namespace {

bool isAdmitted(const Problem& problem, const Variables& variables, NodeId node, const Choice& choice) {
  const auto writes = variables.writes(node);
  const auto placed = placementsOf(choice);
  for (const std::uint32_t index : variables.pins(node)) {
    const Pin& pin = problem.pins[index];
    if (!pin.placement) {
      const bool has = choice.strategy && std::find(pin.strategies.begin(), pin.strategies.end(),
                                                    effectiveStrategy(*choice.strategy, problem.context.worldSize)) !=
                                              pin.strategies.end();
      if (has == pin.forbids) return false;
      continue;
    }
    const auto& targets = variables.pinTargets(index).values;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const bool isTarget = writes[i].isValid() && std::binary_search(targets.begin(), targets.end(), writes[i]);
      if (isTarget && !pin.admits(placed[i], problem.context.worldSize)) return false;
    }
  }
  return true;
}

Placement wantedOf(const rules::LayerStrategy& option, Role role) {
  switch (role) {
    case Role::LayerInput: return option.input;
    case Role::Weight: return option.weight;
    case Role::Bias: return option.bias;
    case Role::Down: return option.down.value_or(Placement());
    default: return {};
  }
}

std::vector<Choice> layerChoices(const Problem& problem, const Variables& variables, NodeId node,
                                 std::span<const Placement> reads) {
  const auto options =
      variables.ruleOff(node)
          ? std::vector<rules::LayerStrategy>(1)
          : rules::layerStrategies(*problem.graph, node, *variables.layer(node), problem.context).offered;
  const auto values = variables.reads(node);
  std::vector<Choice> choices;
  for (const rules::LayerStrategy& option : options) {
    bool fits = true;
    for (std::size_t i = 0; i < values.size(); ++i) fits = fits && wantedOf(option, values[i].role) == reads[i];
    if (fits) choices.push_back({{option.result}, option, {}, {}});
  }
  return choices;
}

std::vector<Choice> ruleChoices(const Problem& problem, const Variables& variables, NodeId node,
                                std::span<const Placement> reads) {
  if (problem.graph->node(node).kind != graph::NodeKind::Call) {
    std::vector<Choice> choices{{{Placement()}, std::nullopt, {}, {}}};
    for (const rules::SourceSplit& split : rules::sourceSplits(*problem.graph, node, problem.context))
      choices.push_back({{split.placement}, std::nullopt, {}, {}});
    return choices;
  }
  const bool isSplit = std::any_of(reads.begin(), reads.end(), [](const Placement& p) { return p.isSplit(); });
  if (variables.ruleOff(node) && isSplit) return {};
  const auto verdict = rules::applyRule({*problem.graph, node, reads, problem.context.worldSize});
  std::vector<Choice> choices;
  if (const auto* claims = std::get_if<std::vector<rules::Claim>>(&verdict)) {
    for (const rules::Claim& claim : *claims) choices.push_back({claim.results, std::nullopt, {}, {}});
  }
  return choices;
}

}  // namespace

std::vector<Choice> choicesOf(const Problem& problem, const Variables& variables, NodeId node,
                              std::span<const Placement> reads) {
  auto choices = variables.layer(node) ? layerChoices(problem, variables, node, reads)
                                       : ruleChoices(problem, variables, node, reads);
  choices = withRedistributions(problem, variables, node, std::move(choices));
  std::erase_if(choices, [&](const Choice& choice) { return !isAdmitted(problem, variables, node, choice); });
  return choices;
}

}  // namespace cleave::solve
