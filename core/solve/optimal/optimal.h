#pragma once
/// The `optimal` engine; see engine.h and optimum.h.
#include "base/progress.h"
#include "solve/optimal/solve_cache.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/trace/events.h"

namespace cleave::solve {

/// `problem`'s pins were checked. `cache` may be null.
SolveResult solveOptimal(const Problem& problem, TraceSink& sink, const Progress& progress, SolveCache* cache);

}  // namespace cleave::solve
