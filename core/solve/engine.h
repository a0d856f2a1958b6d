#pragma once
/// Search engines: the same rules, the same trace format, different ways through the candidates.
///
/// `reference` is Optimum's search: topological order, chronological backtracking, the first solution wins; explicit
/// stack. `learning` goes the same way and answers the same, but remembers which placements have failed and goes back
/// to a step that can change them. `optimal` answers the cheapest plan of the cost model (optimal/optimum.h).
/// Candidates come in the candidate set's order; pins and forbids remove candidates (and say so in the conflict).
/// Runs on the caller's thread; stops at `progress`'s token within a millisecond, or when the sink answers false.
#include "base/progress.h"
#include "solve/optimal/optimum.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/solve_cache.h"
#include "solve/trace/events.h"

namespace cleave::solve {

/// BadUsage for a pin that matches nothing. `cache` makes solving again after a change of pins cheaper; it may be null.
Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress = {},
                          SolveCache* cache = nullptr);

/// A sink that keeps tables and counts only: for solving without a recording.
std::unique_ptr<TraceSink> makeCountingSink();

}  // namespace cleave::solve
