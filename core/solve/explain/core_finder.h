#pragma once
/// Deletion filters over what the user demands and over the nodes of the graph: the work behind whyNot and smallestCore.
///
/// Demands (pins, switched-off rules, the budget) are dropped with real solves, nodes with Relaxation: first a neighbourhood of what is
/// demanded is grown until it cannot hold together, then parts of it are let go, halves first, single nodes last. What is
/// left is needed, each one (Chinneck and Dravnieks 1991; halving as in Junker's QuickXplain, 2004).
#include "solve/engine.h"
#include "solve/explain/relaxed.h"

namespace cleave::solve {

/// The engine that explanations ask: it answers the same as the reference, in fewer tries.
inline constexpr Engine kExplaining = Engine::Learning;

/// What can hold of one problem under some of its demands.
struct Attempt {
  Relaxation::Answer answer = Relaxation::Answer::Unknown;  ///< Unknown: the deadline, or the user
  std::optional<Solution> solution;                         ///< iff Holds
  std::vector<ConflictRecord> causes;                       ///< Fails
  std::uint64_t conflicts = 0;                              ///< that the search met
};
Result<Attempt> attempt(const Problem& problem, const Deadline& deadline, Engine engine = kExplaining);

/// The smallest core of `problem` under the pins `question`, which are the question itself and never part of the answer.
/// nullopt: there is a solution, or the deadline came before it was known. `optimal` minds the budget, the others do not.
Result<std::optional<Core>> findCore(const Problem& problem, const std::vector<Pin>& question, const Deadline& deadline,
                                     Engine engine = kExplaining);

}  // namespace cleave::solve
