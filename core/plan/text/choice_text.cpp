#include "plan/text/choice_text.h"
#include "base/quantities.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cleave::plan {
namespace {

std::string atLeast(const Plan& plan) {
  if (!plan.lowerBoundFs) return "";
  return fmt::format(". Not proved; the proved lower bound is {} per step", solve::timeText(*plan.lowerBoundFs));
}

/// Rounds up to two digits, so that "within" holds: 0.8441 → "0.85", 1234 → "1300".
std::string roundedUp(double percent) {
  const int lastDigit = static_cast<int>(std::floor(std::log10(percent))) - 1;
  const double unit = std::pow(10.0, lastDigit);
  const double up = std::ceil(percent / unit * (1 - 1e-12)) * unit;
  return lastDigit >= 0 ? fmt::format("{:.0f}", up) : fmt::format("{:g}", up);
}

}  // namespace

std::string proofInWords(const Plan& plan) {
  if (!plan.fastest) return {};
  if (plan.isProvedOptimal) return "proved";
  const auto least = plan.lowerBoundFs ? static_cast<double>(*plan.lowerBoundFs) : 0.0;
  if (least <= 0) return "not proved";
  const double gap = static_cast<double>(plan.cost.femtoseconds()) / least - 1;  // of this plan, slack included
  if (gap <= 0) return "not proved";
  return fmt::format("within {} % of the lower bound", roundedUp(std::max(gap * 100, 0.01)));
}

std::string choiceInWords(const Plan& plan) {
  if (!plan.fastest) return {};
  const double slack = plan.spec.cost.slackPercent;
  const std::int64_t saved = plan.fastest->bytes - plan.cost.bytes();
  const Femtoseconds longer = plan.cost.femtoseconds() - plan.fastest->femtoseconds;
  const std::string proof = plan.isProvedOptimal ? "" : atLeast(plan);
  const std::string all = std::string(plan.isProvedOptimal ? "all plans" : "the plans found") +
                          (spec::demandTexts(plan.spec).empty() ? "" : " that meet the demands");
  const std::int64_t budget = plan.spec.cost.budgetBytes();
  const std::string fitting = budget == std::numeric_limits<std::int64_t>::max()
                                  ? all
                                  : fmt::format("{} within {} per rank", all, bytesText(budget));
  if (slack == 0) return fmt::format("the fastest of {}{}", fitting, proof);
  if (longer == 0 && saved == 0) {
    return fmt::format("the fastest of {}; plans up to {} slower save no memory{}", fitting, solve::slackText(slack),
                       proof);
  }
  return fmt::format(
      "least memory among {} within {} of the fastest. The fastest is {} faster per step and needs {} more per rank{}",
      all, solve::slackText(slack), solve::timeText(longer), bytesText(saved), proof);
}

}  // namespace cleave::plan
