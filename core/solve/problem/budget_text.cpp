#include "solve/problem/budget_text.h"

#include "base/quantities.h"

namespace cleave::solve {

std::string budgetText(const Problem& problem, bool hasDemands, bool isProved) {
  return fmt::format("The memory budget is {} per rank{}, and no plan {}for {} {}.",
                     bytesText(problem.cost.budgetBytes()),
                     problem.cost.memoryBudget ? "" : fmt::format(" (the memory of: {})", problem.cost.profile.title),
                     hasDemands ? "under these demands " : "", counted(problem.context.worldSize, "rank"),
                     isProved ? "needs as little" : "was found that needs as little");
}

}  // namespace cleave::solve
