#pragma once
/// One solve for an explanation, with a work limit and three possible answers.
#include "solve/candidates/work.h"
#include "solve/engine.h"

namespace cleave::solve {

/// The engine of explanations. It finds the same solution as the reference engine in fewer tries.
inline constexpr Engine kExplaining = Engine::Learning;

/// The answer for one problem.
struct Attempt {
  Answer answer = Answer::Unknown;  ///< Unknown: the work limit was reached, the user stopped it, or the engine did not
                                    ///< prove that there is no plan
  std::optional<Solution> solution;    ///< iff Holds
  std::vector<ConflictRecord> causes;  ///< Fails
  bool isOverBudget = false;           ///< Fails under `optimal`: plans exist, but not within the budget
  std::uint64_t conflicts = 0;         ///< number of conflicts in the search
};
/// Only `optimal` respects the budget. `learning` runs in place of `reference`. `cache` is shared by attempts on one
/// graph; it may be null.
Result<Attempt> attempt(const Problem& problem, Work& work, Engine engine = kExplaining, SolveCache* cache = nullptr);

}  // namespace cleave::solve
