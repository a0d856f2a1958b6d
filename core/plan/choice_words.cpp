#include "base/quantities.h"
#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cleave::plan {
namespace {

std::string atLeast(const Plan& plan) {
  if (!plan.lowerBoundFs) return "";
  return fmt::format("; that is not proved, but that no plan takes less than {} is",
                     solve::timeText(*plan.lowerBoundFs));
}

/// To two digits and never too little: "within" must hold. 0.8441 → "0.85", 1234 → "1300".
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
  const double gap = static_cast<double>(plan.cost.femtoseconds()) / least - 1;  // this plan's, slack included
  if (gap <= 0) return "not proved";
  return fmt::format("within {} % of the fastest there can be", roundedUp(std::max(gap * 100, 0.01)));
}

std::string choiceInWords(const Plan& plan) {
  if (!plan.fastest) return {};
  const double slack = plan.costSettings.slackPercent;
  const std::int64_t saved = plan.fastest->bytes - plan.cost.bytes();
  const Femtoseconds longer = plan.cost.femtoseconds() - plan.fastest->femtoseconds;
  const std::string proof = plan.isProvedOptimal ? "" : atLeast(plan);
  const std::string all = std::string(plan.isProvedOptimal ? "all plans" : "the plans that were found") +
                          (plan.demands.empty() ? "" : " that meet its demands");
  const std::int64_t budget = plan.costSettings.budgetBytes();
  const std::string fitting = budget == std::numeric_limits<std::int64_t>::max()
                                  ? all
                                  : fmt::format("{} within {} per rank", all, bytesText(budget));
  if (slack == 0) return fmt::format("the fastest of {}{}", fitting, proof);
  if (longer == 0 && saved == 0) {
    return fmt::format(
        "the fastest of {}, and none that takes at most {} longer and needs no more in total holds less throughout the "
        "step{}",
        fitting, solve::slackText(slack), proof);
  }
  return fmt::format(
      "holds least throughout the step of {} within {} of the fastest that need no more in total; the fastest takes {} "
      "per step ({} less) and needs {} per rank ({} more){}",
      all, solve::slackText(slack), solve::timeText(plan.fastest->femtoseconds), solve::timeText(longer),
      bytesText(plan.fastest->bytes), bytesText(saved), proof);
}

}  // namespace cleave::plan
