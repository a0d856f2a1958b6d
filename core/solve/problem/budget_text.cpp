#include "solve/problem/budget_text.h"

#include "base/quantities.h"

namespace cleave::solve {

std::string budgetText(const Problem& problem, bool hasDemands, bool isProved) {
  const int ranks = problem.context.worldSize;
  return fmt::format("The memory budget is {} per rank{}, and no plan {}for {} rank{} {}.",
                     bytesText(problem.cost.budgetBytes()),
                     problem.cost.memoryBudget ? "" : fmt::format(" (the memory of: {})", problem.cost.profile.title),
                     hasDemands ? "under these demands " : "", ranks, ranks == 1 ? "" : "s",
                     isProved ? "needs as little" : "was found that needs as little");
}

}  // namespace cleave::solve
