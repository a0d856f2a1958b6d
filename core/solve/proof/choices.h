#pragma once
/// Every choice of a step for given placements of its operands. Only the rules and the layers' strategies decide them,
/// so that a proof checker can rely on them. The engines use candidates/candidates.h, which returns the same choices
/// with reasons.
#include "solve/problem/choice.h"
#include "solve/problem/problem.h"
#include "solve/problem/variables.h"

#include <span>

namespace cleave::solve {

/// `reads`: placements of variables.reads(node), in that order.
std::vector<Choice> choicesOf(const Problem& problem, const Variables& variables, NodeId node,
                              std::span<const Placement> reads);

}  // namespace cleave::solve
