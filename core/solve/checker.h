#pragma once
/// Accepts or refuses a solution. Shares no code with the engines: it asks the rules and the layers' options again,
/// node by node, and checks pins, tied weights, divisibility and the memory budget on its own.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// Every violation found (at most 32), each a sentence that names the value; empty: the solution holds.
std::vector<std::string> check(const Problem& problem, const Solution& solution);

/// The part of `check` that looks at one node: its results' sizes, and whether they follow from its operands. Pins, and
/// what other nodes need, do not count; so a solution can be judged while it is put together.
std::vector<std::string> checkNode(const Problem& problem, const Solution& solution, NodeId node);

}  // namespace cleave::solve
