#include "plan/text/reason_text.h"
#include "base/quantities.h"
#include "solve/problem/wording.h"

namespace cleave::plan {
namespace {

using solve::Change;
using solve::ChangeKind;

std::string settingText(const Change& change) {
  switch (change.kind) {
    case ChangeKind::LiftPin: return fmt::format("without the pin {}", change.argument);
    case ChangeKind::RuleOn:
      return change.argument == "*" ? "with all rules on" : fmt::format("with the rule of {} on", change.argument);
    case ChangeKind::FullCandidateSet: return "with the full candidate set";
    case ChangeKind::SequenceParallel: return "with sequence parallelism";
    default: return solve::toText(change);
  }
}

/// "saves 13.6 µs per step", "takes as long", "costs 32.9 µs per step".
std::string effectText(Femtoseconds extra) {
  if (extra == 0) return "takes as long";
  return fmt::format("{} {} per step", extra < 0 ? "saves" : "costs", solve::timeText(extra < 0 ? -extra : extra));
}

/// "saves 3 µs per step, but is over the memory budget; within the budget it saves 2 µs per step".
std::string fastestText(const NotAskedFor& setting) {
  std::string text = effectText(setting.extraFs);
  switch (setting.fit) {
    case BudgetFit::Fits: break;
    case BudgetFit::Over:
      text += ", but is over the memory budget";
      if (setting.extraWithinFs) text += fmt::format("; within the budget it {}", effectText(*setting.extraWithinFs));
      break;
    case BudgetFit::NotKnown: text += ", if the memory budget allows it"; break;
  }
  return text;
}

/// Plans that split it are at least as fast, but memory decides among the plans that the slack allows.
std::string savesNoMemory(const DoesNotPay& costs) {
  const std::string time = effectText(costs.extraFs);
  if (costs.isOverBudget && costs.isProved && costs.extraFs == 0)
    return "splitting it takes as long and is over the memory budget";
  if (costs.isOverBudget) {
    return fmt::format("the fastest split {}, but is over the memory budget; {}", time,
                       costs.isProved ? "within the budget, splitting it saves no memory"
                                      : "within the budget, the search found no split that saves memory");
  }
  if (!costs.isProved)
    return fmt::format("the fastest split {}; whether a split as fast fits the memory budget is unknown", time);
  const Femtoseconds saved = -costs.extraFs;
  return costs.extraBytes > 0
             ? fmt::format("splitting it saves at most {} per step and needs at least {} more per rank",
                           solve::timeText(saved), bytesText(costs.extraBytes))
             : fmt::format("splitting it saves at most {} per step and no memory", solve::timeText(saved));
}

std::string whyText(const DoesNotPay& costs) {
  const std::string time = solve::timeText(costs.extraFs);
  if (!costs.isFastEnough) return fmt::format("splitting it costs at least {} per step", time);
  if (costs.extraFs < 0 || costs.isOverBudget) return savesNoMemory(costs);
  if (costs.extraBytes > 0) {
    return costs.extraFs == 0
               ? fmt::format("splitting it saves no time and needs at least {} more per rank",
                             bytesText(costs.extraBytes))
               : fmt::format("splitting it costs at least {} per step and needs at least {} more per rank", time,
                             bytesText(costs.extraBytes));
  }
  if (!costs.isProved)
    return fmt::format("the search found no split that saves memory; the fastest split {}", effectText(costs.extraFs));
  if (costs.extraFs == 0) return "splitting it saves neither time nor memory";
  return fmt::format("splitting it costs at least {} per step and saves no memory", time);
}

std::string whyText(const NotAskedFor& setting) {
  const std::string why = setting.why.empty() ? std::string() : setting.why + "; ";
  if (!setting.changes.empty())
    return fmt::format("{}{} it can be split{}, which {}", why, changesText(setting.changes),
                       setting.isOfOptimal ? " with --engine optimal" : "", fastestText(setting));
  return fmt::format("{}the engine keeps the first plan that it finds; {} {}", why,
                     setting.isOfOptimal ? "a split that the engine optimal finds" : "splitting it",
                     fastestText(setting));
}

}  // namespace

std::string_view kindOf(const ReplicationReason& reason) {
  static constexpr std::string_view kKinds[] = {"split", "cannot", "does_not_pay", "not_asked_for", "not_known"};
  return kKinds[reason.index()];
}

std::string changesText(const std::vector<Change>& changes) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> pins, texts;
  for (const Change& change : changes)
    (change.kind == ChangeKind::LiftPin ? pins : texts).push_back(settingText(change));
  if (pins.size() > kMostNamed) pins = {fmt::format("without {} of the pins", pins.size())};
  texts.insert(texts.begin(), pins.begin(), pins.end());
  return solve::joined(texts, "and");
}

std::string cannotText(const Cannot& cannot) {
  if (!cannot.isUnlessRedistributed) return "cannot be split";
  std::string text = "cannot be split without redistribution";
  return cannot.withThat.empty() ? text : fmt::format("{}, and then only {}", text, changesText(cannot.withThat));
}

std::string whyText(const ReplicationReason& reason) {
  if (std::holds_alternative<Split>(reason)) return "split";
  if (const auto* cannot = std::get_if<Cannot>(&reason)) return fmt::format("{}: {}", cannotText(*cannot), cannot->why);
  if (const auto* costs = std::get_if<DoesNotPay>(&reason)) return whyText(*costs);
  if (const auto* setting = std::get_if<NotAskedFor>(&reason)) return whyText(*setting);
  return "the search stopped at its limit before it knew whether a plan splits it";
}

std::string toText(const ReplicationReason& reason) {
  if (std::holds_alternative<Split>(reason)) return "is split";
  if (std::holds_alternative<Cannot>(reason)) return whyText(reason);
  return "is replicated: " + whyText(reason);
}

}  // namespace cleave::plan
