#include "pipeline/solve/over_budget.h"

#include <algorithm>

namespace cleave::pipeline {

bool isOverBudget(const solve::SolveResult& result) {
  const auto& core = result.core.constraints;
  return std::any_of(core.begin(), core.end(),
                     [](const solve::Constraint& c) { return c.kind == solve::ConstraintKind::Budget; });
}

bool exceedsAskedBudget(const plan::Plan& plan) {
  const auto& budget = plan.spec.cost.memoryBudget;
  return budget && plan.cost.bytes() > *budget;
}

std::string overBudgetText(const solve::SolveResult& result) {
  if (!isOverBudget(result)) return {};
  const auto cause = std::find_if(result.causes.begin(), result.causes.end(),
                                  [](const solve::ConflictRecord& c) { return c.isOfWholePlan(); });
  return cause == result.causes.end() ? std::string() : cause->reason;
}

}  // namespace cleave::pipeline
