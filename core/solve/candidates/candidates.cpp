#include "solve/candidates/candidates.h"

#include "rules/source_splits.h"
#include "solve/problem/redistribution.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using rules::LayerStrategy;

/// The arguments that the functions below share.
struct Query {
  const Problem& problem;
  const Variables& variables;
  NodeId node;
  std::span<const Placement> placements;
  std::span<const Read> reads;
  std::span<const std::uint32_t> pins;

  const Graph& graph() const { return *problem.graph; }
  std::string name() const { return ticked(nameOf(graph(), node, variables.layer(node).has_value())); }
  std::string valueName(ValueId v) const { return ticked(graph().value(v).name); }
};

/// The pin that removes this choice, or nullptr.
const Pin* removingPin(const Query& query, const Choice& choice) {
  for (const std::uint32_t index : query.pins) {
    if (!admits(query.problem, query.variables, index, query.node, choice)) return &query.problem.pins[index];
  }
  return nullptr;
}

std::vector<std::string> pinTexts(const Query& query) {
  std::vector<std::string> texts;
  for (const std::uint32_t index : query.pins) texts.push_back(query.problem.pins[index].text);
  return texts;
}

/// "pinned to row" for `lm_head=row`, "forbidden to be row" for `lm_head!=row`; several pins are joined with "and".
std::string pinnedTo(const Query& query) {
  std::vector<std::string> demands;
  for (const std::uint32_t index : query.pins) {
    const Pin& pin = query.problem.pins[index];
    demands.push_back(fmt::format("{} {}", pin.forbids ? "forbidden to be" : "pinned to", pin.wanted()));
  }
  return joined(demands, "and");
}

bool hasForbid(const Query& query) {
  return std::any_of(query.pins.begin(), query.pins.end(),
                     [&](std::uint32_t i) { return query.problem.pins[i].forbids; });
}

std::string listPlacements(std::vector<Placement> placements, const graph::Shape& shape) {
  std::vector<std::string> texts;
  for (const Placement& p : placements) {
    std::string text = inWords(p, shape);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  return joined(texts, "or");
}

std::string sourceReason(graph::NodeKind kind) {
  switch (kind) {
    case graph::NodeKind::Input: return "every rank gets the full input";
    case graph::NodeKind::Constant: return "constants are replicated";
    default: return "operators other than layers read it";
  }
}

std::vector<ValueId> distinct(std::vector<ValueId> values) {
  std::vector<ValueId> once;
  for (ValueId v : values) {
    if (std::find(once.begin(), once.end(), v) == once.end()) once.push_back(v);
  }
  return once;
}

std::vector<ValueId> readValues(const Query& query) {
  std::vector<ValueId> values;
  for (const Read& read : query.reads) values.push_back(read.value);
  return distinct(std::move(values));
}

std::string operandSentence(const Query& query) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < query.reads.size(); ++i) {
    std::string part = fmt::format("{} is {}", query.valueName(query.reads[i].value), query.placements[i].text());
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return joined(parts, "and");
}

ConflictRecord pinConflict(const Query& query, const std::vector<Choice>& claims) {
  std::vector<Placement> possible;
  for (const Choice& claim : claims) {
    if (!claim.results.empty()) possible.push_back(claim.results.front());
  }
  const auto& node = query.graph().node(query.node);
  const std::string what = listPlacements(possible, query.graph().shapeOf(node.results.front()));
  std::string reason;
  if (query.reads.empty()) {
    reason = fmt::format("{} is {}, but {}, so it can only be {}.", query.name(), pinnedTo(query),
                         sourceReason(node.kind), what);
  } else {
    reason = fmt::format("{} is {}, but {}, so it can only be {}.", query.name(), pinnedTo(query),
                         operandSentence(query), what);
  }
  return {query.node, std::move(reason), readValues(query), pinTexts(query)};
}

Demand demandOf(const Query& query, const Pin* pin) {
  return {.index = static_cast<std::uint32_t>(pin - query.problem.pins.data())};
}

void addDemandOnce(std::vector<Demand>& demands, Demand demand) {
  const auto at = std::lower_bound(demands.begin(), demands.end(), demand);
  if (at == demands.end() || *at != demand) demands.insert(at, demand);
}

Candidates keepUnpinned(const Query& query, std::vector<Choice> claims) {
  Candidates found;
  claims = withRedistributions(query.problem, query.variables, query.node, std::move(claims));
  if (query.pins.empty()) {
    found.open = std::move(claims);
    return found;
  }
  for (const Choice& claim : claims) {
    if (const Pin* pin = removingPin(query, claim)) {
      addDemandOnce(found.demands, demandOf(query, pin));
      found.ruledOut.push_back({claim, fmt::format("removed by the pin {}", ticked(pin->text)), pin->text});
    } else {
      found.open.push_back(claim);
    }
  }
  if (found.open.empty()) {
    found.conflict = pinConflict(query, claims);
    found.isFixed = query.reads.empty();
  }
  return found;
}

std::string ruleOffText(const Query& query) {
  return fmt::format("the rule of `{}` is switched off", query.graph().opName(query.graph().node(query.node)));
}

/// An operator without its rule needs all operands replicated. Reports the conflict with the first split operand.
std::optional<Candidates> switchedOff(const Query& query, std::uint32_t off) {
  const auto split =
      std::find_if(query.placements.begin(), query.placements.end(), [](const Placement& p) { return p.isSplit(); });
  if (split == query.placements.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(split - query.placements.begin());
  const ValueId culprit = query.reads[at].value;
  Candidates none;
  none.conflict = {query.node,
                   fmt::format("{} needs all its inputs replicated, because {}, but {} is {}.", query.name(),
                               ruleOffText(query), query.valueName(culprit), split->text()),
                   {culprit},
                   {}};
  none.demands = {{.isRule = true, .index = off}};
  return none;
}

Candidates ruleCandidates(const Query& query) {
  const graph::Node& node = query.graph().node(query.node);
  if (node.kind != graph::NodeKind::Call) {
    std::vector<Choice> choices;
    for (rules::SourceSplit& split : rules::sourceSplits(query.graph(), query.node, query.problem.context))
      choices.push_back({{split.placement}, std::nullopt, std::move(split.reason)});
    choices.push_back({{Placement()}, std::nullopt, sourceReason(node.kind)});
    return keepUnpinned(query, std::move(choices));
  }
  auto verdict = rules::applyRule({query.graph(), query.node, query.placements, query.problem.context.worldSize});
  if (auto* conflict = std::get_if<rules::Conflict>(&verdict)) {
    const auto valuesOf = [&](const std::vector<int>& operands) {
      std::vector<ValueId> values;
      for (int operand : operands) values.push_back(query.reads[static_cast<std::size_t>(operand)].value);
      return distinct(std::move(values));
    };
    Candidates none;
    none.conflict = {query.node, std::move(conflict->reason), valuesOf(conflict->culprits), {}};
    for (const auto& operands : conflict->further) none.furtherCulprits.push_back(valuesOf(operands));
    return none;
  }
  if (const auto off = query.variables.ruleOff(query.node)) {
    if (auto conflict = switchedOff(query, *off)) return *std::move(conflict);
  }
  std::vector<Choice> choices;
  auto& claims = std::get<std::vector<rules::Claim>>(verdict);
  const int decider = claims.empty() ? -1 : claims.front().decider;
  bool areDecidedAlike = true;
  for (rules::Claim& claim : claims) {
    areDecidedAlike = areDecidedAlike && claim.decider == decider;
    choices.push_back({std::move(claim.results), std::nullopt, std::move(claim.reason)});
  }
  Candidates found = keepUnpinned(query, std::move(choices));
  if (areDecidedAlike) found.decider = decider;
  return found;
}

const Placement& neededPlacement(const LayerStrategy& option, Role role) {
  static const Placement replicated;
  switch (role) {
    case Role::LayerInput: return option.input;
    case Role::Weight: return option.weight;
    case Role::Bias: return option.bias;
    case Role::Down: return option.down ? *option.down : replicated;
    default: return replicated;  // every rank needs all labels and the complete routing
  }
}

/// Index of the first operand that the option does not fit; reads.size() if it fits all.
std::size_t firstMisfit(const Query& query, const LayerStrategy& option) {
  for (std::size_t i = 0; i < query.reads.size(); ++i) {
    if (neededPlacement(option, query.reads[i].role) != query.placements[i]) return i;
  }
  return query.reads.size();
}

/// "input", "weight `w`, shared with `embed_tokens`", ...
std::string roleName(const Query& query, const Read& read) {
  if (read.role == Role::LayerInput) return "input";
  if (read.role == Role::Target) return "labels";
  if (read.role == Role::Routing) return "routing";
  std::string what = fmt::format("{} {}", read.role == Role::Bias ? "bias" : "weight", query.valueName(read.value));
  const NodeId producer = query.graph().value(read.value).producer;
  const NodeId owner = query.variables.decider(producer);
  if (owner == producer) return what;
  return fmt::format("{}, shared with {},", what, ticked(graph::layerName(query.graph(), owner)));
}

std::string misfitReason(const Query& query, const LayerStrategy& option, std::size_t misfit) {
  const Read& read = query.reads[misfit];
  const auto& shape = query.graph().shapeOf(read.value);
  return fmt::format("needs its {} {}, but {} is {}", roleName(query, read),
                     inWords(neededPlacement(option, read.role), shape), query.valueName(read.value),
                     query.placements[misfit].text());
}

/// A strategy of the layer, before its operands are considered.
struct Considered {
  Choice choice;
  const Pin* pin = nullptr;  ///< the pin that removes it
  std::size_t misfit = 0;    ///< the first operand with another placement; the number of reads if all fit
};

/// A layer without its rule is replicated, and so are its operands.
rules::LayerStrategies layerStrategiesOf(const Query& query, const graph::LayerShape& layer) {
  if (!query.variables.ruleOff(query.node))
    return rules::layerStrategies(query.graph(), query.node, layer, query.problem.context);
  LayerStrategy whole;
  whole.reason = ruleOffText(query);
  return {{std::move(whole)}, {}};
}

std::vector<Considered> consideredOf(const Query& query, std::vector<LayerStrategy> options) {
  std::vector<Choice> plain;
  for (LayerStrategy& option : options) {
    std::string reason = option.reason;
    plain.push_back({{option.result}, std::move(option), std::move(reason)});
  }
  std::vector<Considered> considered;
  for (Choice& choice : withRedistributions(query.problem, query.variables, query.node, std::move(plain))) {
    const Pin* pin = removingPin(query, choice);
    const std::size_t misfit = firstMisfit(query, *choice.strategy);
    considered.push_back({std::move(choice), pin, misfit});
  }
  return considered;
}

/// True if the layer has several pins that each allow a strategy alone.
bool contradictEachOther(const Query& query, const std::vector<Considered>& considered) {
  const auto hasStrategy = [&](std::uint32_t index) {
    Query alone = query;
    alone.pins = {&index, 1};
    return std::any_of(considered.begin(), considered.end(),
                       [&](const Considered& one) { return !removingPin(alone, one.choice); });
  };
  return query.pins.size() > 1 && std::all_of(query.pins.begin(), query.pins.end(), hasStrategy);
}

/// The conflict if no strategy of the layer satisfies the pins for any operands, because the pins conflict with the
/// sizes or with each other.
ConflictRecord impossiblePin(const Query& query, const std::vector<Considered>& considered,
                             const rules::LayerStrategies& options) {
  std::vector<std::string> refused, offered;
  for (const rules::Refusal& refusal : options.refused) {
    for (const std::uint32_t index : query.pins) {
      const Pin& pin = query.problem.pins[index];
      const auto& wanted = pin.strategies;
      if (!pin.forbids && std::find(wanted.begin(), wanted.end(), refusal.strategy) != wanted.end()) {
        if (std::find(refused.begin(), refused.end(), refusal.reason) == refused.end())
          refused.push_back(refusal.reason);
      }
    }
  }
  for (const LayerStrategy& option : options.offered) {
    std::string one = strategyText(option, query.problem.context.worldSize);
    if (std::find(offered.begin(), offered.end(), one) == offered.end()) offered.push_back(std::move(one));
  }
  std::string reason = fmt::format("{} is {}, but ", query.name(), pinnedTo(query));
  if (contradictEachOther(query, considered)) {
    reason += fmt::format("no strategy satisfies {}: it can be {}.", query.pins.size() == 2 ? "both" : "all of them",
                          joined(offered, "or"));
  } else if (!refused.empty()) {
    reason += fmt::format("{}.", fmt::join(refused, "; "));
  } else {
    const std::string_view because = query.variables.ruleOff(query.node) ? "its rule is switched off and " : "";
    reason += fmt::format("{}its only {} here {} {}.", because, offered.size() == 1 ? "strategy" : "strategies",
                          offered.size() == 1 ? "is" : "are", joined(offered, "and"));
  }
  return {query.node, std::move(reason), {}, pinTexts(query)};
}

/// The conflict between the placement of one operand and the placements that the remaining strategies need.
ConflictRecord misfitConflict(const Query& query, const std::vector<const Considered*>& considered,
                              std::size_t misfit) {
  const Read& read = query.reads[misfit];
  const auto& shape = query.graph().shapeOf(read.value);
  std::vector<Placement> wanted;
  for (const Considered* one : considered) wanted.push_back(neededPlacement(*one->choice.strategy, read.role));
  const std::string why = query.variables.ruleOff(query.node) ? fmt::format(", because {}", ruleOffText(query)) : "";
  const std::string needs =
      fmt::format("its {} {}{}, but {} is {} here.", roleName(query, read), listPlacements(wanted, shape), why,
                  query.valueName(read.value), query.placements[misfit].text());
  ConflictRecord record{query.node, {}, {}, pinTexts(query)};
  if (query.pins.empty()) {
    record.reason = fmt::format("{} needs {}", query.name(), needs);
  } else if (hasForbid(query)) {
    record.reason = fmt::format("{} is {}, and its other strategies need {}", query.name(), pinnedTo(query), needs);
  } else {
    record.reason = fmt::format("{} is {}, which needs {}", query.name(), pinnedTo(query), needs);
  }
  // Earlier operands removed other strategies, so they are part of the cause.
  for (std::size_t i = 0; i <= misfit; ++i) record.culprits.push_back(query.reads[i].value);
  record.culprits = distinct(std::move(record.culprits));
  return record;
}

/// Fills in the conflict of a layer without a fitting strategy, with the demands and culprits that cause it.
void explainLayer(Query query, const std::vector<Considered>& considered, const rules::LayerStrategies& options,
                  Candidates& found) {
  const std::size_t reads = query.reads.size();
  // Pins are a cause only if a strategy fits without them.
  const bool fitsUnpinned =
      std::any_of(considered.begin(), considered.end(), [&](const Considered& one) { return one.misfit == reads; });
  std::vector<const Considered*> left;
  for (const Considered& one : considered) {
    if (one.pin == nullptr) left.push_back(&one);
  }
  std::size_t checkedReads = 0;  // number of operands that are part of the cause
  if (left.empty()) {
    found.conflict = impossiblePin(query, considered, options);
    found.isFixed = true;
  } else {
    if (!fitsUnpinned) {
      query.pins = {};
      left.clear();
      for (const Considered& one : considered) left.push_back(&one);
    }
    while (true) {
      CLEAVE_CHECK(checkedReads < reads, "no strategy of the layer fits");
      std::vector<const Considered*> fitting;
      for (const Considered* one : left) {
        if (neededPlacement(*one->choice.strategy, query.reads[checkedReads].role) == query.placements[checkedReads])
          fitting.push_back(one);
      }
      ++checkedReads;
      if (fitting.empty()) break;
      left = std::move(fitting);
    }
    found.conflict = misfitConflict(query, left, checkedReads - 1);
  }
  for (const Considered& one : considered) {
    if (one.misfit >= checkedReads) addDemandOnce(found.demands, demandOf(query, one.pin));
  }
}

Candidates layerCandidates(const Query& query, const graph::LayerShape& layer) {
  const auto options = layerStrategiesOf(query, layer);
  const std::vector<Considered> considered = consideredOf(query, options.offered);
  Candidates found;
  for (const Considered& one : considered) {
    if (one.misfit < query.reads.size()) {
      found.ruledOut.push_back({one.choice, misfitReason(query, *one.choice.strategy, one.misfit), {}});
    } else if (one.pin) {
      found.ruledOut.push_back(
          {one.choice, fmt::format("removed by the pin {}", ticked(one.pin->text)), one.pin->text});
      addDemandOnce(found.demands, demandOf(query, one.pin));
    } else {
      found.open.push_back(one.choice);
    }
  }
  if (found.open.empty()) {
    found.demands.clear();
    explainLayer(query, considered, options, found);
  }
  if (const auto off = query.variables.ruleOff(query.node))
    addDemandOnce(found.demands, {.isRule = true, .index = *off});
  return found;
}

}  // namespace

Candidates candidatesOf(const Problem& problem, const Variables& variables, NodeId node,
                        std::span<const Placement> reads) {
  const Query query{problem, variables, node, reads, variables.reads(node), variables.pins(node)};
  CLEAVE_CHECK(query.reads.size() == reads.size(), "a placement for each operand");
  const auto& layer = variables.layer(node);
  return layer ? layerCandidates(query, *layer) : ruleCandidates(query);
}

bool admits(const Problem& problem, const Variables& variables, std::uint32_t pin, NodeId node, const Choice& choice) {
  const Pin& demand = problem.pins[pin];
  const int ranks = problem.context.worldSize;
  if (!demand.placement) {
    const auto& wanted = demand.strategies;
    const bool has = choice.strategy && std::find(wanted.begin(), wanted.end(),
                                                  effectiveStrategy(*choice.strategy, ranks)) != wanted.end();
    return has != demand.forbids;
  }
  const auto placed = placementsOf(choice);
  const auto writes = variables.writes(node);
  const auto& targets = variables.pinTargets(pin).values;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const bool isTarget = writes[i].isValid() && std::binary_search(targets.begin(), targets.end(), writes[i]);
    if (isTarget && !demand.admits(placed[i], ranks)) return false;
  }
  return true;
}

}  // namespace cleave::solve
