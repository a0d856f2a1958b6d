#include "solve/explain/impossible.h"

#include "solve/candidates/candidates.h"
#include "solve/problem/form.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using rules::StrategyOption;

/// One value and the placement that it is asked to have.
struct Question {
  const Problem& problem;
  const Variables& variables;
  ValueId value;
  const Placement& placement;

  const Graph& graph() const { return *problem.graph; }
  const graph::Shape& shape() const { return graph().shapeOf(value); }
  std::string name() const { return ticked(graph().value(value).name); }
  std::string wanted() const { return inWords(placement, shape()); }
};

rules::LayerOptions optionsOf(const Problem& problem, const Variables& variables, NodeId layer) {
  return rules::layerOptions(*problem.graph, layer, *variables.layer(layer), problem.context);
}

bool offers(const Problem& problem, const Variables& variables, NodeId layer, rules::Strategy strategy) {
  const auto options = optionsOf(problem, variables, layer).offered;
  return std::any_of(options.begin(), options.end(),
                     [&](const StrategyOption& o) { return formOf(o, problem.context.worldSize) == strategy; });
}

/// Each reason once: several forms are refused for the same numbers.
std::vector<std::string> reasonsOf(const std::vector<rules::Refusal>& refused) {
  std::vector<std::string> reasons;
  for (const rules::Refusal& refusal : refused) {
    if (std::find(reasons.begin(), reasons.end(), refusal.reason) == reasons.end()) reasons.push_back(refusal.reason);
  }
  return reasons;
}

bool gives(const Question& question, NodeId layer, const StrategyOption& option) {
  const auto& shape = *question.variables.layer(layer);
  if (question.value == shape.weight) return option.weight == question.placement;
  if (question.value == shape.bias) return option.bias == question.placement;
  if (question.value == shape.down) return option.down == question.placement;
  if (question.variables.isRedistributable(question.value))
    return option.result == question.placement || option.result.isReplicated() || question.placement.isReplicated();
  return option.result == question.placement;
}

/// Settings that have the form that is missed, and the problem under them.
struct Wider {
  const char* name;
  Problem problem;
};
std::optional<Wider> menuWith(const Problem& problem, const auto& has) {
  const bool isNarrow = problem.context.menu != rules::Menu::Full,
             isWhole = problem.context.sequenceParallel == rules::SequenceParallel::Off;
  const auto with = [&](const char* name, bool full, bool onSequence) -> std::optional<Wider> {
    Wider wider{name, problem};
    if (full) wider.problem.context.menu = rules::Menu::Full;
    if (onSequence) wider.problem.context.sequenceParallel = rules::SequenceParallel::Auto;
    return has(wider.problem) ? std::optional(std::move(wider)) : std::nullopt;
  };
  if (isNarrow) {
    if (auto found = with("the full menu", true, false)) return found;
  }
  if (isWhole) {
    if (auto found = with("sequence parallelism", false, true)) return found;
  }
  return isNarrow && isWhole ? with("the full menu and sequence parallelism", true, true) : std::nullopt;
}

std::optional<Impossible> layerCannot(const Question& question, NodeId layer) {
  const auto givesIt = [&](const Problem& problem) {
    const auto options = optionsOf(problem, question.variables, layer).offered;
    return std::any_of(options.begin(), options.end(),
                       [&](const StrategyOption& o) { return gives(question, layer, o); });
  };
  if (givesIt(question.problem)) return std::nullopt;
  const std::string own = ticked(graph::layerName(question.graph(), layer));
  Impossible found{{.node = layer}, {}};
  if (auto menu = menuWith(question.problem, givesIt)) {
    found.kind = ConstraintKind::Menu;
    found.text = fmt::format("{} cannot be {}: with {} its layer {} has a form for that, but that is not chosen here.",
                             question.name(), question.wanted(), menu->name, own);
    found.wider = std::move(menu->problem);
    return found;
  }
  const auto reasons = reasonsOf(optionsOf(question.problem, question.variables, layer).refused);
  found.kind = reasons.empty() ? ConstraintKind::Rule : ConstraintKind::Sizes;
  found.text =
      fmt::format("{} cannot be {}: the layer {} can be {} here{}.", question.name(), question.wanted(), own,
                  formsOf(question.problem, question.variables, layer),
                  reasons.empty() ? ", and none of these gives it that" : fmt::format("; {}", joined(reasons, "and")));
  return found;
}

/// What the rule says where the operands lie as the question asks of the result, as far as they can.
std::string exampleOf(const Question& question, NodeId node) {
  Problem free = question.problem;
  free.pins.clear();
  free.rulesOff.clear();
  std::vector<Placement> placements;
  for (ValueId v : graph::operandsOf(question.graph().node(node))) {
    const bool isSource = question.graph().node(question.graph().value(v).producer).kind != graph::NodeKind::Call;
    const bool fits =
        question.placement.localShape(question.graph().shapeOf(v), question.problem.context.worldSize).has_value();
    placements.push_back(fits && !isSource ? question.placement : Placement());
  }
  const Candidates found = candidatesOf(free, Variables(free), node, placements);
  return found.open.empty() ? " " + found.conflict.reason : std::string();
}

std::optional<Impossible> operatorCannot(const Question& question, Domains& domains, Work& work, NodeId node) {
  if (domains.gives(question.value, question.placement, work) != Answer::Fails) return std::nullopt;
  return Impossible{
      {.kind = ConstraintKind::Rule,
       .node = node,
       .value = question.value,
       .text = fmt::format("{} cannot be {}: its operator gives that for no placement that its inputs can have.{}",
                           question.name(), question.wanted(), exampleOf(question, node))},
      {}};
}

}  // namespace

std::string formsOf(const Problem& problem, const Variables& variables, NodeId layer) {
  std::vector<std::string> names;
  for (const StrategyOption& option : optionsOf(problem, variables, layer).offered) {
    std::string name(rules::toText(formOf(option, problem.context.worldSize)));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return joined(names, "or");
}

std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, Domains& domains,
                                        Work& work, ValueId value, const Placement& placement) {
  const Question question{problem, variables, value, placement};
  const std::string sizes = placement.whyNotDivisible(question.shape(), problem.context.worldSize);
  const NodeId producer = problem.graph->value(value).producer;
  const NodeId decider = variables.decider(producer);
  if (!sizes.empty()) {
    return Impossible{{.kind = ConstraintKind::Sizes,
                       .node = decider,
                       .text = fmt::format("{} {} cannot be {}: {}.", question.name(), graph::toText(question.shape()),
                                           placement.text(), sizes)},
                      {}};
  }
  if (variables.layer(decider)) return layerCannot(question, decider);
  if (problem.graph->node(producer).kind == graph::NodeKind::Call)
    return operatorCannot(question, domains, work, producer);
  if (placement.isReplicated()) return std::nullopt;
  const std::string why = problem.graph->node(producer).kind == graph::NodeKind::Input
                              ? "an input is given whole to every rank"
                          : problem.graph->node(producer).kind == graph::NodeKind::Parameter
                              ? "it is used by more than layers, so every rank holds all of it"
                              : "a constant is whole on every rank";
  return Impossible{{.kind = ConstraintKind::Rule,
                     .node = producer,
                     .value = value,
                     .text = fmt::format("{} cannot be split: {}.", question.name(), why)},
                    {}};
}

std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, NodeId layer,
                                        rules::Strategy strategy) {
  if (offers(problem, variables, layer, strategy)) return std::nullopt;
  const std::string own = ticked(graph::layerName(*problem.graph, layer));
  Impossible found{{.node = layer}, {}};
  for (const rules::Refusal& refusal : optionsOf(problem, variables, layer).refused) {
    if (refusal.strategy != strategy) continue;
    found.kind = ConstraintKind::Sizes;
    found.text = fmt::format("{} cannot be {}: {}.", own, rules::toText(strategy), refusal.reason);
    return found;
  }
  auto menu = menuWith(problem, [&](const Problem& other) { return offers(other, variables, layer, strategy); });
  found.kind = menu ? ConstraintKind::Menu : ConstraintKind::Rule;
  found.text = menu ? fmt::format("{} cannot be {} here: that form comes with {} alone.", own, rules::toText(strategy),
                                  menu->name)
                    : fmt::format("{} cannot be {}: a layer of its kind has no such form. Here it can be {}.", own,
                                  rules::toText(strategy), formsOf(problem, variables, layer));
  if (menu) found.wider = std::move(menu->problem);
  return found;
}

}  // namespace cleave::solve
