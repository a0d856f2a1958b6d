#pragma once
/// Every choice that a step has where its operands are placed so, asked of the rules and the layers' strategies alone:
/// what a proof checker may believe. The engines ask candidates/candidates.h, which answers the same with reasons.
#include "solve/problem/choice.h"
#include "solve/problem/problem.h"
#include "solve/problem/variables.h"

#include <span>

namespace cleave::solve {

/// `reads`: placements of variables.reads(node), in that order. Empty where there is none.
std::vector<Choice> choicesOf(const Problem& problem, const Variables& variables, NodeId node,
                              std::span<const Placement> reads);

}  // namespace cleave::solve
