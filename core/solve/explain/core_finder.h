#pragma once
/// Deletion filters over the user's demands and over the nodes of the graph, for whyNot and irreducibleCore.
///
/// A solve decides if a demand (a pin, a switched-off rule, the budget) can be dropped; Relaxation decides it for
/// nodes. The neighbourhood of the demands grows until it cannot hold together. Then parts of it are relaxed, halves
/// first, single nodes last. Every node that remains is needed (Chinneck and Dravnieks 1991; halving as in Junker's
/// QuickXplain, 2004). Smaller sets may exist.
#include "solve/explain/attempt.h"

namespace cleave::solve {

enum class CoreOutcome : std::uint8_t {
  HasCore,
  HasSolution,
  NotKnown,  ///< the work limit was reached before it was known if there is a solution
};
struct CoreAnswer {
  CoreOutcome outcome = CoreOutcome::NotKnown;
  Core core;  ///< HasCore
};

/// Constraints that conflict in `problem` under the pins `question`, which are never part of the answer. `cache` is
/// shared by all tries. Only `optimal` respects the budget.
Result<CoreAnswer> findCore(const Problem& problem, const std::vector<Pin>& question, Work& work, SolveCache& cache,
                            Engine engine = kExplaining);

}  // namespace cleave::solve
