#pragma once
/// The `reference` engine; see engine.h.
#include "base/progress.h"
#include "solve/problem/problem.h"
#include "solve/problem/solve_result.h"
#include "solve/problem/variables.h"
#include "solve/trace/events.h"

namespace cleave::solve {

SolveResult solveReference(const Problem& problem, const Variables& variables, TraceSink& sink,
                           const Progress& progress);

}  // namespace cleave::solve
