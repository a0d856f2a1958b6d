#include "solve/explain/impossible.h"

#include "rules/source_splits.h"
#include "solve/candidates/candidates.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using rules::LayerStrategy;

/// A value and the requested placement.
struct AskedPlacement {
  const Problem& problem;
  const Variables& variables;
  ValueId value;
  const Placement& placement;

  const Graph& graph() const { return *problem.graph; }
  const graph::Shape& shape() const { return graph().shapeOf(value); }
  std::string name() const { return ticked(graph().value(value).name); }
  std::string wanted() const { return inWords(placement, shape()); }
};

bool offers(const Problem& problem, const Variables& variables, NodeId layer, rules::Strategy strategy) {
  const auto options = layerStrategiesOf(problem, variables, layer).offered;
  return std::any_of(options.begin(), options.end(), [&](const LayerStrategy& o) {
    return effectiveStrategy(o, problem.context.worldSize) == strategy;
  });
}

/// Why the sizes forbid this strategy; empty if they allow it, or if the settings do not have it.
std::string refusalOf(const Problem& problem, const Variables& variables, NodeId layer, rules::Strategy strategy) {
  for (const rules::Refusal& refusal : layerStrategiesOf(problem, variables, layer).refused) {
    if (refusal.strategy == strategy) return refusal.reason;
  }
  return {};
}

/// Each reason once, because several strategies can be refused for the same numbers.
std::vector<std::string> reasonsOf(const std::vector<rules::Refusal>& refused) {
  std::vector<std::string> reasons;
  for (const rules::Refusal& refusal : refused) {
    if (std::find(reasons.begin(), reasons.end(), refusal.reason) == reasons.end()) reasons.push_back(refusal.reason);
  }
  return reasons;
}

bool gives(const AskedPlacement& asked, NodeId layer, const LayerStrategy& option) {
  const auto& shape = *asked.variables.layer(layer);
  if (asked.value == shape.weight) return option.weight == asked.placement;
  if (asked.value == shape.bias) return option.bias == asked.placement;
  if (asked.value == shape.down) return option.down == asked.placement;
  if (asked.variables.isRedistributable(asked.value))
    return option.result == asked.placement || option.result.isReplicated() || asked.placement.isReplicated();
  return option.result == asked.placement;
}

/// The kind of layer that has this strategy on the sequence; nullopt for other strategies.
std::optional<graph::LayerKind> kindOnSequence(rules::Strategy strategy) {
  switch (strategy) {
    case rules::Strategy::RowScatter:
    case rules::Strategy::GatherColumn:
    case rules::Strategy::GatherReplicated:
    case rules::Strategy::ReplicatedOnSequence: return graph::LayerKind::Linear;
    case rules::Strategy::VocabScatter: return graph::LayerKind::Embedding;
    default: return std::nullopt;
  }
}

/// The end of the sentence "`lm_head` cannot be vocab" for a strategy that the layer has under no settings.
std::string whyNowhere(const Problem& problem, const Variables& variables, NodeId layer, rules::Strategy strategy) {
  if (problem.context.worldSize == 1) return " on 1 rank: there is nothing to split.";
  const graph::Shape& result = problem.graph->shapeOf(problem.graph->node(layer).results.front());
  if (kindOnSequence(strategy) == variables.layer(layer)->kind) {
    return fmt::format(": that strategy splits the sequence, but the result {} has no separate sequence dimension.",
                       graph::toText(result));
  }
  return fmt::format(": a layer of its kind has no such strategy. Here it can be {}.",
                     strategiesOf(problem, variables, layer));
}

std::optional<Impossible> layerCannot(const AskedPlacement& asked, NodeId layer) {
  const auto givesIt = [&](const Problem& problem) {
    const auto options = layerStrategiesOf(problem, asked.variables, layer).offered;
    return std::any_of(options.begin(), options.end(), [&](const LayerStrategy& o) { return gives(asked, layer, o); });
  };
  if (givesIt(asked.problem)) return std::nullopt;
  const std::string own = ticked(graph::layerName(asked.graph(), layer));
  Impossible found{{.node = layer}, {}};
  if (auto wider = widerWith(asked.problem, givesIt)) {
    found.kind = ConstraintKind::CandidateSet;
    found.text = fmt::format("{} cannot be {} here: its layer {} needs {} for that.", asked.name(), asked.wanted(), own,
                             wider->name);
    found.wider = std::move(wider);
    return found;
  }
  const auto reasons = reasonsOf(layerStrategiesOf(asked.problem, asked.variables, layer).refused);
  found.kind = reasons.empty() ? ConstraintKind::Rule : ConstraintKind::Sizes;
  found.text = fmt::format("{} cannot be {}: the layer {} can only be {} here{}.", asked.name(), asked.wanted(), own,
                           strategiesOf(asked.problem, asked.variables, layer),
                           reasons.empty() ? "" : fmt::format("; {}", joined(reasons, "and")));
  return found;
}

/// The rule's reason if the operands have the requested placement, as far as their shapes allow it.
std::string exampleOf(const AskedPlacement& asked, NodeId node) {
  Problem free = asked.problem;
  free.pins.clear();
  free.rulesOff.clear();
  std::vector<Placement> placements;
  for (ValueId v : graph::operandsOf(asked.graph().node(node))) {
    const bool isSource = asked.graph().node(asked.graph().value(v).producer).kind != graph::NodeKind::Call;
    const bool fits = asked.placement.localShape(asked.graph().shapeOf(v), asked.problem.context.worldSize).has_value();
    placements.push_back(fits && !isSource ? asked.placement : Placement());
  }
  const Candidates found = candidatesOf(free, Variables(free), node, placements);
  return found.open.empty() ? " " + found.conflict.reason : std::string();
}

std::optional<Impossible> operatorCannot(const AskedPlacement& asked, Domains& domains, Work& work, NodeId node) {
  if (domains.gives(asked.value, asked.placement, work) != Answer::Fails) return std::nullopt;
  return Impossible{
      {.kind = ConstraintKind::Rule,
       .node = node,
       .value = asked.value,
       .text = fmt::format("{} cannot be {}: its operator does not give that for any placement of its inputs.{}",
                           asked.name(), asked.wanted(), exampleOf(asked, node))},
      {}};
}

}  // namespace

std::optional<Wider> widerWith(const Problem& problem, const std::function<bool(const Problem&)>& has) {
  const bool isNarrow = problem.context.candidateSet != rules::CandidateSet::Full,
             isWhole = problem.context.sequenceParallel == rules::SequenceParallel::Off;
  const auto with = [&](const char* name, bool full, bool onSequence) -> std::optional<Wider> {
    Wider wider{name, problem, {}};
    if (full) {
      wider.problem.context.candidateSet = rules::CandidateSet::Full;
      wider.changes.push_back({ChangeKind::FullCandidateSet, {}});
    }
    if (onSequence) {
      wider.problem.context.sequenceParallel = rules::SequenceParallel::Auto;
      wider.changes.push_back({ChangeKind::SequenceParallel, "auto"});
    }
    return has(wider.problem) ? std::optional(std::move(wider)) : std::nullopt;
  };
  if (isNarrow) {
    if (auto found = with("the full candidate set", true, false)) return found;
  }
  if (isWhole) {
    if (auto found = with("sequence parallelism", false, true)) return found;
  }
  return isNarrow && isWhole ? with("the full candidate set and sequence parallelism", true, true) : std::nullopt;
}

std::string strategiesOf(const Problem& problem, const Variables& variables, NodeId layer) {
  std::vector<std::string> names;
  for (const LayerStrategy& option : layerStrategiesOf(problem, variables, layer).offered) {
    std::string name(rules::toText(effectiveStrategy(option, problem.context.worldSize)));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return joined(names, "or");
}

std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, Domains& domains,
                                        Work& work, ValueId value, const Placement& placement) {
  const AskedPlacement asked{problem, variables, value, placement};
  const std::string sizes = placement.whyNotDivisible(asked.shape(), problem.context.worldSize);
  const NodeId producer = problem.graph->value(value).producer;
  const NodeId decider = variables.decider(producer);
  if (!sizes.empty()) {
    return Impossible{{.kind = ConstraintKind::Sizes,
                       .node = decider,
                       .text = fmt::format("{} {} cannot be {}: {}.", asked.name(), graph::toText(asked.shape()),
                                           placement.text(), sizes)},
                      {}};
  }
  if (variables.layer(decider)) return layerCannot(asked, decider);
  if (problem.graph->node(producer).kind == graph::NodeKind::Call)
    return operatorCannot(asked, domains, work, producer);
  if (placement.isReplicated()) return std::nullopt;
  const auto splits = rules::sourceSplits(*problem.graph, producer, problem.context);
  const auto isOffered = [&](const rules::SourceSplit& split) { return split.placement == placement; };
  if (std::any_of(splits.begin(), splits.end(), isOffered)) return std::nullopt;
  const std::string why =
      !splits.empty()
          ? fmt::format("it can be {}, as {}", inWords(splits.front().placement, asked.shape()), splits.front().reason)
      : problem.graph->node(producer).kind == graph::NodeKind::Input     ? "every rank gets the full input"
      : problem.graph->node(producer).kind == graph::NodeKind::Parameter ? "operators other than layers read it"
                                                                         : "constants are replicated";
  return Impossible{{.kind = ConstraintKind::Rule,
                     .node = producer,
                     .value = value,
                     .text = fmt::format("{} cannot be {}: {}.", asked.name(),
                                         splits.empty() ? "split" : inWords(placement, asked.shape()), why)},
                    {}};
}

std::optional<Impossible> whyImpossible(const Problem& problem, const Variables& variables, NodeId layer,
                                        rules::Strategy strategy) {
  if (offers(problem, variables, layer, strategy)) return std::nullopt;
  const std::string cannot = fmt::format("{} cannot be {}", ticked(graph::layerName(*problem.graph, layer)),
                                         rules::toText(strategy)),
                    refusal = refusalOf(problem, variables, layer, strategy);
  Impossible found{{.node = layer}, {}};
  if (auto wider = widerWith(problem, [&](const Problem& p) { return offers(p, variables, layer, strategy); })) {
    found.kind = ConstraintKind::CandidateSet;
    found.text = refusal.empty() ? fmt::format("{} here: that strategy needs {}.", cannot, wider->name)
                                 : fmt::format("{} here: {}. With {}, it can.", cannot, refusal, wider->name);
    found.wider = std::move(wider);
    return found;
  }
  if (!refusal.empty()) {
    found.kind = ConstraintKind::Sizes;
    found.text = fmt::format("{}: {}.", cannot, refusal);
    return found;
  }
  const auto refuses = [&](const Problem& p) { return !refusalOf(p, variables, layer, strategy).empty(); };
  if (const auto wider = widerWith(problem, refuses)) {
    found.kind = ConstraintKind::Sizes;
    found.text = fmt::format("{}: that strategy needs {}, and even then {}.", cannot, wider->name,
                             refusalOf(wider->problem, variables, layer, strategy));
    return found;
  }
  found.text = fmt::format("{}{}", cannot, whyNowhere(problem, variables, layer, strategy));
  return found;
}

}  // namespace cleave::solve
