#include "solve/candidates.h"

#include "solve/wording.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using rules::StrategyOption;

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

bool satisfies(const Pin& pin, bool isWanted) {
  return pin.forbids != isWanted;
}

/// The pin that removes this choice, or nullptr.
const Pin* removingPin(const Asked& asked, const Choice& choice) {
  const auto writes = asked.variables.writes(asked.node);
  for (const std::uint32_t index : asked.pins) {
    const Pin& pin = asked.problem.pins[index];
    if (!pin.placement) {
      const auto& wanted = pin.strategies;
      const bool has =
          choice.strategy && std::find(wanted.begin(), wanted.end(), choice.strategy->strategy) != wanted.end();
      if (!satisfies(pin, has)) return &pin;
      continue;
    }
    const auto placed = placementsOf(choice);
    const auto& targets = asked.variables.pinTargets(index).values;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!writes[i].isValid() || !std::binary_search(targets.begin(), targets.end(), writes[i])) continue;
      if (!satisfies(pin, placed[i] == *pin.placement)) return &pin;
    }
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
    const std::string wanted = pin.text.substr(pin.text.find_first_not_of(' ', pin.text.find('=') + 1));
    demands.push_back(fmt::format("{} {}", pin.forbids ? "forbidden to be" : "pinned to", wanted));
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
    case graph::NodeKind::Input: return "an input is given whole to every rank";
    case graph::NodeKind::Constant: return "a constant is whole on every rank";
    default: return "a parameter that layers do not own alone is whole on every rank";
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

Candidates keepUnpinned(const Asked& asked, std::vector<Choice> claims) {
  Candidates found;
  if (asked.pins.empty()) {
    found.open = std::move(claims);
    return found;
  }
  for (const Choice& claim : claims) {
    if (const Pin* pin = removingPin(asked, claim)) {
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

Candidates ruleCandidates(const Asked& asked) {
  const graph::Node& node = asked.graph().node(asked.node);
  if (node.kind != graph::NodeKind::Call) {
    Choice whole{{Placement()}, std::nullopt, sourceReason(node.kind)};
    return keepUnpinned(asked, {std::move(whole)});
  }
  auto verdict = rules::applyRule({asked.graph(), asked.node, asked.placements, asked.problem.context.worldSize});
  if (auto* conflict = std::get_if<rules::Conflict>(&verdict)) {
    std::vector<ValueId> culprits;
    for (int operand : conflict->culprits) culprits.push_back(asked.reads[static_cast<std::size_t>(operand)].value);
    Candidates none;
    none.conflict = {asked.node, std::move(conflict->reason), distinct(std::move(culprits)), {}};
    return none;
  }
  std::vector<Choice> choices;
  for (rules::Claim& claim : std::get<std::vector<rules::Claim>>(verdict)) {
    choices.push_back({std::move(claim.results), std::nullopt, std::move(claim.reason)});
  }
  return keepUnpinned(asked, std::move(choices));
}

// ---- layers
// ----------------------------------------------------------------------------------------------------------

const Placement& wantedBy(const StrategyOption& option, Role role) {
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
std::size_t firstMisfit(const Asked& asked, const StrategyOption& option) {
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
  const std::string what =
      fmt::format("{} {}", read.role == Role::Bias ? "bias" : "weight", asked.valueName(read.value));
  const NodeId producer = asked.graph().value(read.value).producer;
  const NodeId owner = asked.variables.decider(producer);
  if (owner == producer) return what;
  return fmt::format("{}, shared with {},", what, ticked(graph::layerName(asked.graph(), owner)));
}

std::string misfitReason(const Asked& asked, const StrategyOption& option, std::size_t misfit) {
  const Read& read = asked.reads[misfit];
  const auto& shape = asked.graph().shapeOf(read.value);
  return fmt::format("needs its {} {}, but {} is {}", roleName(asked, read),
                     inWords(wantedBy(option, read.role), shape), asked.valueName(read.value),
                     asked.placements[misfit].text());
}

/// No option of the layer passes the pins, whatever its operands: the pin and the sizes disagree.
ConflictRecord impossiblePin(const Asked& asked, const rules::LayerOptions& options) {
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
  for (const StrategyOption& option : options.offered) offered.emplace_back(rules::toText(option.strategy));
  std::string reason = fmt::format("{} is {}, but ", asked.name(), pinnedTo(asked));
  if (!refused.empty()) {
    reason += fmt::format("{}.", fmt::join(refused, "; "));
  } else {
    reason += fmt::format("the only forms it has here are {}.", joined(offered, "and"));
  }
  return {asked.node, std::move(reason), {}, pinTexts(asked)};
}

/// What the remaining options need of one operand, against what it is.
ConflictRecord misfitConflict(const Asked& asked, const std::vector<const StrategyOption*>& options,
                              std::size_t misfit) {
  const Read& read = asked.reads[misfit];
  const auto& shape = asked.graph().shapeOf(read.value);
  std::vector<Placement> wanted;
  for (const StrategyOption* option : options) wanted.push_back(wantedBy(*option, read.role));
  const std::string needs =
      fmt::format("its {} {}, but {} is {} here.", roleName(asked, read), listPlacements(wanted, shape),
                  asked.valueName(read.value), asked.placements[misfit].text());
  ConflictRecord record{asked.node, {}, {}, pinTexts(asked)};
  if (asked.pins.empty()) {
    record.reason = fmt::format("{} needs {}", asked.name(), needs);
  } else if (hasForbid(asked)) {
    record.reason = fmt::format("{} is {}; what is left needs {}", asked.name(), pinnedTo(asked), needs);
  } else {
    record.reason = fmt::format("{} is {}, which needs {}", asked.name(), pinnedTo(asked), needs);
  }
  // Operands before this one narrowed the options down, so they are part of the cause.
  for (std::size_t i = 0; i <= misfit; ++i) record.culprits.push_back(asked.reads[i].value);
  record.culprits = distinct(std::move(record.culprits));
  return record;
}

ConflictRecord layerConflict(Asked asked, const rules::LayerOptions& options, const std::vector<bool>& isPinnedAway) {
  // Pins are a cause only where the layer would have fitted without them.
  const bool fitsUnpinned =
      std::any_of(options.offered.begin(), options.offered.end(),
                  [&](const StrategyOption& option) { return firstMisfit(asked, option) == asked.reads.size(); });
  std::vector<const StrategyOption*> left;
  for (std::size_t i = 0; i < options.offered.size(); ++i) {
    if (!isPinnedAway[i]) left.push_back(&options.offered[i]);
  }
  if (left.empty()) return impossiblePin(asked, options);
  if (!fitsUnpinned) {
    asked.pins = {};
    left.clear();
    for (const StrategyOption& option : options.offered) left.push_back(&option);
  }
  for (std::size_t i = 0; i < asked.reads.size(); ++i) {
    std::vector<const StrategyOption*> fitting;
    for (const StrategyOption* option : left) {
      if (wantedBy(*option, asked.reads[i].role) == asked.placements[i]) fitting.push_back(option);
    }
    if (fitting.empty()) return misfitConflict(asked, left, i);
    left = std::move(fitting);
  }
  CLEAVE_CHECK(false, "a layer with a fitting option was asked for its conflict");
  return {};
}

Candidates layerCandidates(const Asked& asked, const graph::LayerShape& layer) {
  const auto options = rules::layerOptions(asked.graph(), asked.node, layer, asked.problem.context);
  Candidates found;
  std::vector<bool> isPinnedAway(options.offered.size(), false);
  for (std::size_t i = 0; i < options.offered.size(); ++i) {
    const StrategyOption& option = options.offered[i];
    Choice choice{{option.result}, option, option.reason};
    const Pin* pin = removingPin(asked, choice);
    isPinnedAway[i] = pin != nullptr;
    const std::size_t misfit = firstMisfit(asked, option);
    if (misfit < asked.reads.size()) {
      found.ruledOut.push_back({std::move(choice), misfitReason(asked, option, misfit), {}});
    } else if (pin) {
      found.ruledOut.push_back({std::move(choice), fmt::format("removed by the pin {}", ticked(pin->text)), pin->text});
    } else {
      found.open.push_back(std::move(choice));
    }
  }
  if (found.open.empty()) {
    found.conflict = layerConflict(asked, options, isPinnedAway);
    found.isFixed = std::find(isPinnedAway.begin(), isPinnedAway.end(), false) == isPinnedAway.end();
  }
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

std::vector<Placement> placementsOf(const Choice& choice) {
  std::vector<Placement> placements = choice.results;
  if (choice.strategy) {
    placements.push_back(choice.strategy->weight);
    placements.push_back(choice.strategy->bias);
    if (choice.strategy->down) placements.push_back(*choice.strategy->down);
  }
  return placements;
}

}  // namespace cleave::solve
