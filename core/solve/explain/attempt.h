#pragma once
/// One solve on behalf of an explanation: bounded by work, with an answer of three.
#include "solve/candidates/work.h"
#include "solve/engine.h"

namespace cleave::solve {

/// The engine that explanations ask: it answers the same as the reference, in fewer tries.
inline constexpr Engine kExplaining = Engine::Learning;

/// What can hold of one problem.
struct Attempt {
  Answer answer =
      Answer::Unknown;  ///< Unknown: the work ended, the user stopped it, or the engine did not prove its "none"
  std::optional<Solution> solution;    ///< iff Holds
  std::vector<ConflictRecord> causes;  ///< Fails
  bool isOverBudget = false;           ///< Fails under `optimal`: there are plans, and none within the budget
  std::uint64_t conflicts = 0;         ///< that the search met
};
/// `optimal` minds the budget, the others do not; `reference` is asked through `learning`.
/// `cache`: what attempts at one graph share; may be null.
Result<Attempt> attempt(const Problem& problem, Work& work, Engine engine = kExplaining, SolveCache* cache = nullptr);

}  // namespace cleave::solve
