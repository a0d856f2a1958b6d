#pragma once
/// The `reference` engine; see engine.h.
#include "solve/engine.h"
#include "solve/variables.h"

namespace cleave::solve {

SolveResult solveReference(const Problem& problem, const Variables& variables, TraceSink& sink, const Progress& progress);

}  // namespace cleave::solve
