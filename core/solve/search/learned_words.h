#pragma once
/// What `learning` says in words: steps that fail for what was learnt before, and the demands that it proved
/// impossible.
#include "solve/candidates/candidates.h"
#include "solve/problem/constraint.h"

namespace cleave::solve {

/// "`add_4` R was shown to fail: `lm_head` is pinned to row, which needs ...": all of `choices`, for what `origin`
/// says.
std::string shownToFail(const Problem& problem, const Variables& variables, NodeId node,
                        std::span<const Choice* const> choices, const ConflictRecord& origin);

/// Demands that cannot hold together as constraints, each with what it runs into. Without demands it is the candidate
/// set and the rules alone: then the conflict met most often. `conflicts`: those the search met, most often first.
Core coreOf(const Problem& problem, const Variables& variables, std::span<const Demand> demands,
            const std::vector<ConflictRecord>& conflicts);

}  // namespace cleave::solve
