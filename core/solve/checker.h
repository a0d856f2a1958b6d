#pragma once
/// Accepts or refuses a solution. It shares no code with the engines: it applies the rules and the layers' options
/// again, node by node, and checks pins, tied weights, divisibility and the memory budget.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// Every violation found (at most 32), each a sentence that names the value; empty if the solution is valid.
std::vector<std::string> check(const Problem& problem, const Solution& solution);

/// The part of `check` for one node: the sizes of its results, and the rule that gives them from its operands. It
/// ignores pins and other nodes, so it can check a partial solution.
std::vector<std::string> checkNode(const Problem& problem, const Solution& solution, NodeId node);

}  // namespace cleave::solve
