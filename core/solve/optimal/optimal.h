#pragma once
/// The `optimal` engine; see engine.h and optimum.h.
#include "base/progress.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/trace/events.h"

namespace cleave::solve {

namespace optimal {
struct Tables;
}

/// `problem`'s pins were checked; `tables` were filled for its graph, context and costs, or are empty.
SolveResult solveOptimal(const Problem& problem, optimal::Tables& tables, TraceSink& sink, const Progress& progress);

}  // namespace cleave::solve
