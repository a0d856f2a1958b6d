#pragma once
/// The `reference` engine; see engine.h.
#include "base/progress.h"
#include "solve/candidates/candidate_table.h"
#include "solve/trace/events.h"

namespace cleave::solve {

SolveResult solveReference(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                           const Progress& progress);

}  // namespace cleave::solve
