#pragma once
/// Accepts or refuses a solution. Shares no code with the engines: it asks the rules and the layers' options again, node
/// by node, and checks pins, tied weights and divisibility on its own.
#include "solve/problem.h"

namespace cleave::solve {

/// Every violation found (at most 32), each a sentence that names the value; empty: the solution holds.
std::vector<std::string> check(const Problem& problem, const Solution& solution);

}  // namespace cleave::solve
