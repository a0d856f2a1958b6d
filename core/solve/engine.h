#pragma once
/// Search engines. All use the same rules and the same trace format, but try candidates in different ways.
///
/// `reference` is Optimum's search: topological order, chronological backtracking, the first solution. `learning` uses
/// the same order and finds the same solution, but it remembers which placements failed and backtracks to a step that
/// can change them. `optimal` finds the cheapest plan of the cost model (optimal/optimum.h). Candidates have the order
/// of the candidate set. Pins and forbids remove candidates, and the conflict names them. An engine runs on the
/// caller's thread. It stops within a millisecond after a request by `progress`, or when the sink returns false.
#include "base/progress.h"
#include "solve/optimal/optimum.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/solve_cache.h"
#include "solve/trace/events.h"

namespace cleave::solve {

/// BadUsage for a pin that matches nothing. `cache` makes the next solve after a change of pins faster; it may be null.
Result<SolveResult> solve(const Problem& problem, Engine engine, TraceSink& sink, const Progress& progress = {},
                          SolveCache* cache = nullptr);

/// A sink that keeps only tables and counts, for solving without a trace.
std::unique_ptr<TraceSink> makeCountingSink();

}  // namespace cleave::solve
