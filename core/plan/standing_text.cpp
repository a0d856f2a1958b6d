#include "base/quantities.h"
#include "plan/standing.h"
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

std::string longerThanThis(Femtoseconds time) {
  return solve::longerText(time) + (time == 0 ? " as this one" : " per step");
}

/// "the fastest such plan takes 3 µs less per step, but needs more than the memory budget; within it the fastest takes
/// 2 µs less per step".
std::string fastestText(std::string_view such, const NotAskedFor& setting) {
  const std::string_view whose = setting.isOfOptimal ? ", which engine optimal finds," : "";
  std::string takes = fmt::format("{}{} takes {}", such, whose, longerThanThis(setting.extraFs));
  switch (setting.fit) {
    case BudgetFit::Fits: break;
    case BudgetFit::Over:
      takes += ", but needs more than the memory budget";
      if (setting.extraWithinFs)
        takes += fmt::format("; the fastest within it takes {}", longerThanThis(*setting.extraWithinFs));
      break;
    case BudgetFit::NotKnown: takes += ", memory budget aside"; break;
  }
  return takes;
}

/// Plans that split it are faster, but memory decides among those that the slack admits.
std::string savesNothing(const DoesNotPay& costs) {
  if (costs.isOverBudget && costs.isProved && costs.extraFs == 0)
    return "is replicated because of the memory budget: plans that split it take as long, and need more";
  if (costs.isOverBudget) {
    const std::string_view within = costs.isProved ? "of those within the budget none that is fast enough and needs no "
                                                     "more in total holds less throughout the step"
                                                   : "within the budget none was found that is fast enough, needs no "
                                                     "more in total and holds less throughout the step";
    return fmt::format(
        "is replicated because of the memory budget: the fastest of the plans that split it takes {} and needs more, "
        "and {}",
        longerThanThis(costs.extraFs), within);
  }
  if (!costs.isProved) {
    return fmt::format(
        "is replicated in the best plan that was found: the fastest of the plans that split it takes {}, and whether "
        "one as fast stays within the memory budget is not known",
        longerThanThis(costs.extraFs));
  }
  const std::string more = costs.extraBytes > 0
                               ? fmt::format("the one that holds least throughout the step needs {} more on each rank",
                                             bytesText(costs.extraBytes))
                               : std::string("none holds less throughout the step");
  return fmt::format(
      "is replicated because a rank then holds less: of the plans that split it and are fast enough {}, though the "
      "fastest takes {}",
      more, longerThanThis(costs.extraFs));
}

std::string toText(const DoesNotPay& costs) {
  if (!costs.isFastEnough)
    return fmt::format("the best plan that does takes at least {} longer per step", solve::timeText(costs.extraFs));
  if (costs.extraBytes > 0)
    return fmt::format(
        "of the plans that do and are fast enough, the one that holds least throughout the step needs {} more on each "
        "rank",
        bytesText(costs.extraBytes));
  if (!costs.isProved)
    return fmt::format(
        "no plan was found that does, is fast enough, needs no more in total and holds less throughout the step; the "
        "fastest of all that do takes {}",
        longerThanThis(costs.extraFs));
  if (costs.extraFs == 0)
    return "a plan that does is as fast, but none that is fast enough and needs no more in total holds less throughout "
           "the step";
  return fmt::format(
      "no plan that does is fast enough, needs no more in total and holds less throughout the step; the fastest of "
      "them takes {}",
      longerThanThis(costs.extraFs));
}

}  // namespace

std::string_view kindOf(const Standing& standing) {
  static constexpr std::string_view kKinds[] = {"split", "cannot", "does_not_pay", "not_asked_for", "not_known"};
  return kKinds[standing.index()];
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

std::string toText(const Standing& standing) {
  if (std::holds_alternative<Split>(standing)) return "is split";
  if (const auto* cannot = std::get_if<Cannot>(&standing))
    return fmt::format("{}: {}", cannotText(*cannot), cannot->why);
  if (const auto* costs = std::get_if<DoesNotPay>(&standing)) {
    if (costs->isFastEnough && (costs->extraFs < 0 || costs->isOverBudget)) return savesNothing(*costs);
    return "does not pay to split: " + toText(*costs);
  }
  if (const auto* setting = std::get_if<NotAskedFor>(&standing)) {
    const std::string why = setting->why.empty() ? std::string() : fmt::format(" ({})", setting->why);
    if (setting->changes.empty()) {
      return fmt::format("is replicated in the first plan that this engine finds{}; {}", why,
                         fastestText("the fastest plan that splits it", *setting));
    }
    return fmt::format("is not asked to split{}: {} it can be, and {}", why, changesText(setting->changes),
                       fastestText("the fastest such plan", *setting));
  }
  return "is replicated; whether a plan splits it could not be determined within the limits of the search";
}

}  // namespace cleave::plan
