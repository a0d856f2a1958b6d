#pragma once
/// The text of the budget as a constraint. Callers report the memory of the smallest plan separately.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// "No plan for 4 ranks fits the memory budget of 80 GiB per rank (the memory of NVIDIA H100)."
std::string budgetText(const Problem& problem, bool hasDemands, bool isProved);

}  // namespace cleave::solve
