#pragma once
/// The texts of `learning`: conflicts from learned no-goods, and the demands that it proved to be impossible.
#include "solve/candidates/candidates.h"
#include "solve/problem/constraint.h"

namespace cleave::solve {

/// "`add_4` cannot be R here: `lm_head` is pinned to row, which needs ...": every choice fails because of `origin`.
std::string learnedFailureText(const Problem& problem, const Variables& variables, NodeId node,
                               std::span<const Choice* const> choices, const ConflictRecord& origin);

/// Conflicting demands as constraints, each with its conflict. Without demands the candidate set and the rules
/// conflict, so the result is the most frequent conflict. `conflicts`: conflicts of the search, the most frequent
/// first.
Core coreOf(const Problem& problem, const Variables& variables, std::span<const Demand> demands,
            const std::vector<ConflictRecord>& conflicts);

}  // namespace cleave::solve
