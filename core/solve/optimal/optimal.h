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

/// Requires checked pins. `tables` are empty or belong to the problem's graph, context and costs.
SolveResult solveOptimal(const Problem& problem, optimal::Tables& tables, TraceSink& sink, const Progress& progress);

}  // namespace cleave::solve
