#pragma once
/// The `learning` engine: the way of `reference`, without the parts of it that are known to fail.
///
/// Same static order, same candidates, no restarts. Where nothing fits, the engine asks which placements and which
/// demands suffice for that, goes back to the latest step that can change one of them, and remembers the rest as a
/// no-good (no_goods.h). It leaves out only subtrees without a solution, so it finds the very solution of `reference`,
/// or its "none", in at most as many tries. Where there is none, the last explanation has no placement in it: what
/// remains, the demands, cannot hold together, whatever is chosen (SolveResult::core).
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
