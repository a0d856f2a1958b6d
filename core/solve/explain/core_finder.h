#pragma once
/// Deletion filters over what the user demands and over the nodes of the graph: the work behind whyNot and
/// irreducibleCore.
///
/// Demands (pins, switched-off rules, the budget) are dropped with real solves, nodes with Relaxation: first a
/// neighbourhood of what is demanded is grown until it cannot hold together, then parts of it are let go, halves first,
/// single nodes last. What is left is needed, each one (Chinneck and Dravnieks 1991; halving as in Junker's
/// QuickXplain, 2004). It need not be the smallest such set: there may be others.
#include "solve/explain/attempt.h"

namespace cleave::solve {

enum class CoreOutcome : std::uint8_t {
  HasCore,
  HasSolution,
  NotKnown,  ///< the work ended before it was known whether there is a solution
};
struct CoreAnswer {
  CoreOutcome outcome = CoreOutcome::NotKnown;
  Core core;  ///< HasCore
};

/// What cannot hold together in `problem` under the pins `question`, which are the question itself and never part of
/// the answer. `cache`: what all that is tried here shares. `optimal` minds the budget, the others do not.
Result<CoreAnswer> findCore(const Problem& problem, const std::vector<Pin>& question, Work& work, SolveCache& cache,
                            Engine engine = kExplaining);

}  // namespace cleave::solve
