#include "base/quantities.h"
#include "plan/plan.h"

#include <limits>

namespace cleave::plan {
namespace {

std::string atLeast(const Plan& plan) {
  if (!plan.lowerBoundFs) return "";
  return fmt::format("; not proved: no plan takes less than {}", solve::timeText(*plan.lowerBoundFs));
}

}  // namespace

std::string proofInWords(const Plan& plan) {
  if (!plan.fastest) return {};
  if (plan.isProvedOptimal) return "proved";
  const auto least = plan.lowerBoundFs ? static_cast<double>(*plan.lowerBoundFs) : 0.0;
  if (least <= 0) return "not proved";
  const double gap = static_cast<double>(plan.fastest->femtoseconds) / least - 1;
  return fmt::format("within {:.2g} % of the fastest there can be", gap * 100);
}

std::string choiceInWords(const Plan& plan) {
  if (!plan.fastest) return {};
  const double slack = plan.costSettings.slackPercent;
  const std::int64_t saved = plan.fastest->bytes - plan.cost.bytes();
  const Femtoseconds longer = plan.cost.femtoseconds() - plan.fastest->femtoseconds;
  const std::string proof = plan.isProvedOptimal ? "" : atLeast(plan);
  const std::string_view all = plan.isProvedOptimal ? "all plans" : "the plans that were found";
  const std::int64_t budget = plan.costSettings.budgetBytes();
  const std::string fitting = budget == std::numeric_limits<std::int64_t>::max()
                                  ? std::string(all)
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
