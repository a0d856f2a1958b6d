#include "solve/problem/budget_text.h"

#include "base/quantities.h"

namespace cleave::solve {

std::string budgetText(const Problem& problem, bool hasDemands, bool isProved) {
  return fmt::format("No plan for {}{} {} the memory budget of {} per rank{}.",
                     counted(problem.context.worldSize, "rank"), hasDemands ? " under these demands" : "",
                     isProved ? "fits" : "was found within", bytesText(problem.cost.budgetBytes()),
                     problem.cost.memoryBudget ? "" : fmt::format(" (the memory of {})", problem.cost.profile.title));
}

}  // namespace cleave::solve
