#pragma once
/// The `learning` engine: the search of `reference` without the parts that are known to fail.
///
/// It uses the same static order and the same candidates, without restarts. If no candidate fits, it finds the
/// placements and demands that cause this. It goes back to the latest step that can change one of them, and stores the
/// rest as a no-good (no_goods.h). It skips only subtrees without a solution, so it finds the same solution as
/// `reference`, or proves that there is no solution, and never needs more tries. Such a proof ends with an explanation
/// without placements: its demands conflict for all choices (SolveResult::core).
///
/// The idea is conflict-directed backjumping with no-good recording (P. Prosser, "Hybrid Algorithms for the Constraint
/// Satisfaction Problem", 1993; R. Dechter, "Enhancement Schemes for Constraint Processing", 1990).
#include "base/progress.h"
#include "solve/candidates/candidate_table.h"
#include "solve/trace/events.h"

namespace cleave::solve {

SolveResult solveLearning(const Problem& problem, const Variables& variables, CandidateTable& table, TraceSink& sink,
                          const Progress& progress);

}  // namespace cleave::solve
