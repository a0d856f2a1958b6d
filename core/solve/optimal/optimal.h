#pragma once
/// The `optimal` engine; see engine.h and optimum.h.
#include "solve/engine.h"

namespace cleave::solve {

/// `problem`'s pins were checked. `cache` may be null.
SolveResult solveOptimal(const Problem& problem, TraceSink& sink, const Progress& progress, SolveCache* cache);

}  // namespace cleave::solve
