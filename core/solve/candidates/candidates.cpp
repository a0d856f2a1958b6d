#include "solve/candidates/candidates.h"

#include "rules/source_splits.h"
#include "solve/problem/redistribution.h"
#include "solve/problem/strategy_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using rules::LayerStrategy;

/// One question to this file; the functions below share it instead of passing five arguments along.
struct Asked {
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
const Pin* removingPin(const Asked& asked, const Choice& choice) {
  for (const std::uint32_t index : asked.pins) {
    if (!admits(asked.problem, asked.variables, index, asked.node, choice)) return &asked.problem.pins[index];
  }
  return nullptr;
}

std::vector<std::string> pinTexts(const Asked& asked) {
  std::vector<std::string> texts;
  for (const std::uint32_t index : asked.pins) texts.push_back(asked.problem.pins[index].text);
  return texts;
}

/// "pinned to row" from `lm_head=row`, "forbidden to be row" from `lm_head!=row`; several joined.
std::string pinnedTo(const Asked& asked) {
  std::vector<std::string> demands;
  for (const std::uint32_t index : asked.pins) {
    const Pin& pin = asked.problem.pins[index];
    demands.push_back(fmt::format("{} {}", pin.forbids ? "forbidden to be" : "pinned to", pin.wanted()));
  }
  return joined(demands, "and");
}

bool hasForbid(const Asked& asked) {
  return std::any_of(asked.pins.begin(), asked.pins.end(),
                     [&](std::uint32_t i) { return asked.problem.pins[i].forbids; });
}

std::string listPlacements(std::vector<Placement> placements, const graph::Shape& shape) {
  std::vector<std::string> texts;
  for (const Placement& p : placements) {
    std::string text = inWords(p, shape);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  return joined(texts, "or");
}

// ---- sources and rules
// -----------------------------------------------------------------------------------------------

std::string sourceReason(graph::NodeKind kind) {
  switch (kind) {
    case graph::NodeKind::Input: return "every rank gets all of an input";
    case graph::NodeKind::Constant: return "every rank holds all of a constant";
    default: return "every rank holds all of a parameter that not only layers read";
  }
}

std::vector<ValueId> distinct(std::vector<ValueId> values) {
  std::vector<ValueId> once;
  for (ValueId v : values) {
    if (std::find(once.begin(), once.end(), v) == once.end()) once.push_back(v);
  }
  return once;
}

std::vector<ValueId> readValues(const Asked& asked) {
  std::vector<ValueId> values;
  for (const Read& read : asked.reads) values.push_back(read.value);
  return distinct(std::move(values));
}

std::string operandSentence(const Asked& asked) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < asked.reads.size(); ++i) {
    std::string part = fmt::format("{} is {}", asked.valueName(asked.reads[i].value), asked.placements[i].text());
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
  }
  return joined(parts, "and");
}

ConflictRecord pinnedAway(const Asked& asked, const std::vector<Choice>& claims) {
  std::vector<Placement> possible;
  for (const Choice& claim : claims) {
    if (!claim.results.empty()) possible.push_back(claim.results.front());
  }
  const auto& node = asked.graph().node(asked.node);
  const std::string what = listPlacements(possible, asked.graph().shapeOf(node.results.front()));
  std::string reason;
  if (asked.reads.empty()) {
    reason = fmt::format("{} is {}, but {}: it can only be {}.", asked.name(), pinnedTo(asked), sourceReason(node.kind),
                         what);
  } else {
    reason = fmt::format("{} is {}, but where {}, it can only be {}.", asked.name(), pinnedTo(asked),
                         operandSentence(asked), what);
  }
  return {asked.node, std::move(reason), readValues(asked), pinTexts(asked)};
}

Demand demandOf(const Asked& asked, const Pin* pin) {
  return {.index = static_cast<std::uint32_t>(pin - asked.problem.pins.data())};
}

void addOnce(std::vector<Demand>& demands, Demand demand) {
  const auto at = std::lower_bound(demands.begin(), demands.end(), demand);
  if (at == demands.end() || *at != demand) demands.insert(at, demand);
}

Candidates keepUnpinned(const Asked& asked, std::vector<Choice> claims) {
  Candidates found;
  claims = withRedistributions(asked.problem, asked.variables, asked.node, std::move(claims));
  if (asked.pins.empty()) {
    found.open = std::move(claims);
    return found;
  }
  for (const Choice& claim : claims) {
    if (const Pin* pin = removingPin(asked, claim)) {
      addOnce(found.demands, demandOf(asked, pin));
      found.ruledOut.push_back({claim, fmt::format("removed by the pin {}", ticked(pin->text)), pin->text});
    } else {
      found.open.push_back(claim);
    }
  }
  if (found.open.empty()) {
    found.conflict = pinnedAway(asked, claims);
    found.isFixed = asked.reads.empty();
  }
  return found;
}

std::string ruleOffText(const Asked& asked) {
  return fmt::format("the rule of `{}` is switched off", asked.graph().opName(asked.graph().node(asked.node)));
}

/// Without its rule an operator wants all operands replicated: the conflict with the first that is not.
std::optional<Candidates> switchedOff(const Asked& asked, std::uint32_t off) {
  const auto split =
      std::find_if(asked.placements.begin(), asked.placements.end(), [](const Placement& p) { return p.isSplit(); });
  if (split == asked.placements.end()) return std::nullopt;
  const auto at = static_cast<std::size_t>(split - asked.placements.begin());
  const ValueId culprit = asked.reads[at].value;
  Candidates none;
  none.conflict = {asked.node,
                   fmt::format("{} needs all its inputs replicated, because {}; {} is {}.", asked.name(),
                               ruleOffText(asked), asked.valueName(culprit), split->text()),
                   {culprit},
                   {}};
  none.demands = {{.isRule = true, .index = off}};
  return none;
}

Candidates ruleCandidates(const Asked& asked) {
  const graph::Node& node = asked.graph().node(asked.node);
  if (node.kind != graph::NodeKind::Call) {
    std::vector<Choice> choices;
    for (rules::SourceSplit& split : rules::sourceSplits(asked.graph(), asked.node, asked.problem.context))
      choices.push_back({{split.placement}, std::nullopt, std::move(split.reason)});
    choices.push_back({{Placement()}, std::nullopt, sourceReason(node.kind)});
    return keepUnpinned(asked, std::move(choices));
  }
  auto verdict = rules::applyRule({asked.graph(), asked.node, asked.placements, asked.problem.context.worldSize});
  if (auto* conflict = std::get_if<rules::Conflict>(&verdict)) {
    const auto valuesOf = [&](const std::vector<int>& operands) {
      std::vector<ValueId> values;
      for (int operand : operands) values.push_back(asked.reads[static_cast<std::size_t>(operand)].value);
      return distinct(std::move(values));
    };
    Candidates none;
    none.conflict = {asked.node, std::move(conflict->reason), valuesOf(conflict->culprits), {}};
    for (const auto& operands : conflict->further) none.furtherCulprits.push_back(valuesOf(operands));
    return none;
  }
  if (const auto off = asked.variables.ruleOff(asked.node)) {
    if (auto conflict = switchedOff(asked, *off)) return *std::move(conflict);
  }
  std::vector<Choice> choices;
  auto& claims = std::get<std::vector<rules::Claim>>(verdict);
  const int decider = claims.empty() ? -1 : claims.front().decider;
  bool areDecidedAlike = true;
  for (rules::Claim& claim : claims) {
    areDecidedAlike = areDecidedAlike && claim.decider == decider;
    choices.push_back({std::move(claim.results), std::nullopt, std::move(claim.reason)});
  }
  Candidates found = keepUnpinned(asked, std::move(choices));
  if (areDecidedAlike) found.decider = decider;
  return found;
}

// ---- layers
// ----------------------------------------------------------------------------------------------------------

const Placement& wantedBy(const LayerStrategy& option, Role role) {
  static const Placement whole;
  switch (role) {
    case Role::LayerInput: return option.input;
    case Role::Weight: return option.weight;
    case Role::Bias: return option.bias;
    case Role::Down: return option.down ? *option.down : whole;
    default: return whole;  // labels and routing are never split: every rank needs all of them
  }
}

/// Index of the first read that the option does not fit; reads.size() when it fits.
std::size_t firstMisfit(const Asked& asked, const LayerStrategy& option) {
  for (std::size_t i = 0; i < asked.reads.size(); ++i) {
    if (wantedBy(option, asked.reads[i].role) != asked.placements[i]) return i;
  }
  return asked.reads.size();
}

/// "input", "weight `w`, shared with `embed_tokens`", ...
std::string roleName(const Asked& asked, const Read& read) {
  if (read.role == Role::LayerInput) return "input";
  if (read.role == Role::Target) return "labels";
  if (read.role == Role::Routing) return "routing";
  std::string what = fmt::format("{} {}", read.role == Role::Bias ? "bias" : "weight", asked.valueName(read.value));
  const NodeId producer = asked.graph().value(read.value).producer;
  const NodeId owner = asked.variables.decider(producer);
  if (owner == producer) return what;
  return fmt::format("{}, shared with {},", what, ticked(graph::layerName(asked.graph(), owner)));
}

std::string misfitReason(const Asked& asked, const LayerStrategy& option, std::size_t misfit) {
  const Read& read = asked.reads[misfit];
  const auto& shape = asked.graph().shapeOf(read.value);
  return fmt::format("needs its {} {}, but {} is {}", roleName(asked, read),
                     inWords(wantedBy(option, read.role), shape), asked.valueName(read.value),
                     asked.placements[misfit].text());
}

/// A strategy that the layer may take, before its operands are looked at.
struct Considered {
  Choice choice;
  const Pin* pin = nullptr;  ///< that removes it
  std::size_t misfit = 0;    ///< the first operand that is placed otherwise; the number of reads: none
};

/// Without its rule a layer is replicated, and so is all that it takes.
rules::LayerStrategies layerStrategiesOf(const Asked& asked, const graph::LayerShape& layer) {
  if (!asked.variables.ruleOff(asked.node))
    return rules::layerStrategies(asked.graph(), asked.node, layer, asked.problem.context);
  LayerStrategy whole;
  whole.reason = ruleOffText(asked);
  return {{std::move(whole)}, {}};
}

std::vector<Considered> consideredOf(const Asked& asked, std::vector<LayerStrategy> options) {
  std::vector<Choice> plain;
  for (LayerStrategy& option : options) {
    std::string reason = option.reason;
    plain.push_back({{option.result}, std::move(option), std::move(reason)});
  }
  std::vector<Considered> considered;
  for (Choice& choice : withRedistributions(asked.problem, asked.variables, asked.node, std::move(plain))) {
    const Pin* pin = removingPin(asked, choice);
    const std::size_t misfit = firstMisfit(asked, *choice.strategy);
    considered.push_back({std::move(choice), pin, misfit});
  }
  return considered;
}

/// Several pins of one layer, of which each has a strategy by itself.
bool contradictEachOther(const Asked& asked, const std::vector<Considered>& considered) {
  const auto hasStrategy = [&](std::uint32_t index) {
    Asked alone = asked;
    alone.pins = {&index, 1};
    return std::any_of(considered.begin(), considered.end(),
                       [&](const Considered& one) { return !removingPin(alone, one.choice); });
  };
  return asked.pins.size() > 1 && std::all_of(asked.pins.begin(), asked.pins.end(), hasStrategy);
}

/// No strategy of the layer passes the pins, whatever its operands: they and the sizes disagree, or they do among
/// themselves.
ConflictRecord impossiblePin(const Asked& asked, const std::vector<Considered>& considered,
                             const rules::LayerStrategies& options) {
  std::vector<std::string> refused, offered;
  for (const rules::Refusal& refusal : options.refused) {
    for (const std::uint32_t index : asked.pins) {
      const Pin& pin = asked.problem.pins[index];
      const auto& wanted = pin.strategies;
      if (!pin.forbids && std::find(wanted.begin(), wanted.end(), refusal.strategy) != wanted.end()) {
        if (std::find(refused.begin(), refused.end(), refusal.reason) == refused.end())
          refused.push_back(refusal.reason);
      }
    }
  }
  for (const LayerStrategy& option : options.offered) {
    std::string one = strategyText(option, asked.problem.context.worldSize);
    if (std::find(offered.begin(), offered.end(), one) == offered.end()) offered.push_back(std::move(one));
  }
  std::string reason = fmt::format("{} is {}, but ", asked.name(), pinnedTo(asked));
  if (contradictEachOther(asked, considered)) {
    reason += fmt::format("no strategy makes it {}: it can be {}.", asked.pins.size() == 2 ? "both" : "all of these",
                          joined(offered, "or"));
  } else if (!refused.empty()) {
    reason += fmt::format("{}.", fmt::join(refused, "; "));
  } else {
    const std::string_view because = asked.variables.ruleOff(asked.node) ? "its rule is switched off and " : "";
    reason += fmt::format("{}the only {} it has here {} {}.", because, offered.size() == 1 ? "strategy" : "strategies",
                          offered.size() == 1 ? "is" : "are", joined(offered, "and"));
  }
  return {asked.node, std::move(reason), {}, pinTexts(asked)};
}

/// What the remaining strategies need of one operand, against what it is.
ConflictRecord misfitConflict(const Asked& asked, const std::vector<const Considered*>& considered,
                              std::size_t misfit) {
  const Read& read = asked.reads[misfit];
  const auto& shape = asked.graph().shapeOf(read.value);
  std::vector<Placement> wanted;
  for (const Considered* one : considered) wanted.push_back(wantedBy(*one->choice.strategy, read.role));
  const std::string why = asked.variables.ruleOff(asked.node) ? fmt::format(", because {}", ruleOffText(asked)) : "";
  const std::string needs =
      fmt::format("its {} {}{}, but {} is {} here.", roleName(asked, read), listPlacements(wanted, shape), why,
                  asked.valueName(read.value), asked.placements[misfit].text());
  ConflictRecord record{asked.node, {}, {}, pinTexts(asked)};
  if (asked.pins.empty()) {
    record.reason = fmt::format("{} needs {}", asked.name(), needs);
  } else if (hasForbid(asked)) {
    record.reason = fmt::format("{} is {}; what is left needs {}", asked.name(), pinnedTo(asked), needs);
  } else {
    record.reason = fmt::format("{} is {}, which needs {}", asked.name(), pinnedTo(asked), needs);
  }
  // Operands before this one narrowed the strategies down, so they are part of the cause.
  for (std::size_t i = 0; i <= misfit; ++i) record.culprits.push_back(asked.reads[i].value);
  record.culprits = distinct(std::move(record.culprits));
  return record;
}

/// Fills the conflict of a layer without a fitting strategy, and the demands that cause it together with the culprits.
void explainLayer(Asked asked, const std::vector<Considered>& considered, const rules::LayerStrategies& options,
                  Candidates& found) {
  const std::size_t reads = asked.reads.size();
  // Pins are a cause only where the layer would have fitted without them.
  const bool fitsUnpinned =
      std::any_of(considered.begin(), considered.end(), [&](const Considered& one) { return one.misfit == reads; });
  std::vector<const Considered*> left;
  for (const Considered& one : considered) {
    if (one.pin == nullptr) left.push_back(&one);
  }
  std::size_t looked = 0;  // operands that count
  if (left.empty()) {
    found.conflict = impossiblePin(asked, considered, options);
    found.isFixed = true;
  } else {
    if (!fitsUnpinned) {
      asked.pins = {};
      left.clear();
      for (const Considered& one : considered) left.push_back(&one);
    }
    while (true) {
      CLEAVE_CHECK(looked < reads, "a layer with a fitting strategy was asked for its conflict");
      std::vector<const Considered*> fitting;
      for (const Considered* one : left) {
        if (wantedBy(*one->choice.strategy, asked.reads[looked].role) == asked.placements[looked])
          fitting.push_back(one);
      }
      ++looked;
      if (fitting.empty()) break;
      left = std::move(fitting);
    }
    found.conflict = misfitConflict(asked, left, looked - 1);
  }
  for (const Considered& one : considered) {
    if (one.misfit >= looked) addOnce(found.demands, demandOf(asked, one.pin));
  }
}

Candidates layerCandidates(const Asked& asked, const graph::LayerShape& layer) {
  const auto options = layerStrategiesOf(asked, layer);
  const std::vector<Considered> considered = consideredOf(asked, options.offered);
  Candidates found;
  for (const Considered& one : considered) {
    if (one.misfit < asked.reads.size()) {
      found.ruledOut.push_back({one.choice, misfitReason(asked, *one.choice.strategy, one.misfit), {}});
    } else if (one.pin) {
      found.ruledOut.push_back(
          {one.choice, fmt::format("removed by the pin {}", ticked(one.pin->text)), one.pin->text});
      addOnce(found.demands, demandOf(asked, one.pin));
    } else {
      found.open.push_back(one.choice);
    }
  }
  if (found.open.empty()) {
    found.demands.clear();
    explainLayer(asked, considered, options, found);
  }
  if (const auto off = asked.variables.ruleOff(asked.node)) addOnce(found.demands, {.isRule = true, .index = *off});
  return found;
}

}  // namespace

Candidates candidatesOf(const Problem& problem, const Variables& variables, NodeId node,
                        std::span<const Placement> reads) {
  const Asked asked{problem, variables, node, reads, variables.reads(node), variables.pins(node)};
  CLEAVE_CHECK(asked.reads.size() == reads.size(), "a placement for each operand");
  const auto& layer = variables.layer(node);
  return layer ? layerCandidates(asked, *layer) : ruleCandidates(asked);
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
