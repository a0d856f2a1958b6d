#pragma once
/// The budget as a constraint that a user reads; what the smallest plan needs is told beside it.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// "The memory budget is 80 GiB per rank (the memory of: NVIDIA H100), and no plan for 4 ranks needs as little."
std::string budgetText(const Problem& problem, bool hasDemands, bool isProved);

}  // namespace cleave::solve
