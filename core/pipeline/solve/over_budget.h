#pragma once
/// Solves without a plan because of the memory budget, and plans that exceed it.
#include "plan/plan.h"
#include "solve/problem/solve_result.h"

#include <string>

namespace cleave::pipeline {

/// True if there is no plan because of the budget, alone or together with the user's demands.
bool isOverBudget(const solve::SolveResult& result);
/// True if a plan needs more memory than the user's budget. Only the engine `optimal` respects a budget.
bool exceedsAskedBudget(const plan::Plan& plan);
/// The memory of the smallest plan that was found, by kind, and its excess over the budget; empty if the engine found
/// no plan.
std::string overBudgetText(const solve::SolveResult& result);

}  // namespace cleave::pipeline
