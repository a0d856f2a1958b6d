#pragma once
/// What a user can change about a problem, and what the plan is then: nothing is advised that was not tried here.
///
///     CLEAVE_TRY(const Tried tried, tryChange(problem, {ChangeKind::AddPin, "lm_head=column"}, engine, work));
///     if (tried.answer == Answer::Holds) fmt::print("then each step takes {}", timeText(tried.figures.femtoseconds));
#include "solve/candidates/work.h"
#include "solve/engine.h"

#include <string>

namespace cleave::solve {

/// "lift the pin lm_head=row", "use the full candidate set", ...: an imperative clause without a full stop.
std::string toText(const Change& change);
/// BadUsage when the change does not fit the problem.
Result<Problem> applied(const Problem& problem, const Change& change);

/// A plan in three figures, for a card that shows before and after.
struct Figures {
  bool hasPlan = false;
  std::size_t splitLayers = 0, layers = 0;  ///< layers with a weight; split: no rank holds all of it
  std::int64_t rankBytes = 0;               ///< PlanCost::bytes
  Femtoseconds femtoseconds;                ///< PlanCost::femtoseconds
  std::size_t gathered = 0;                 ///< of the split layers: the result is gathered after the product
};
Figures figuresOf(const Problem& problem, const Solution* solution);

/// A change that was applied, solved with the user's engine and checked: the plan that it gives.
struct Tried {
  Answer answer = Answer::Unknown;
  std::optional<Solution> solution;  ///< iff Holds
  Figures figures;                   ///< of it
  bool isOverBudget = false;         ///< Fails for the budget alone
  std::uint64_t conflicts = 0;       ///< that its search met
};
/// BadUsage as `applied`. `cache`: what tries at one graph share; may be null.
Result<Tried> tryChange(const Problem& problem, const Change& change, Engine engine, Work& work,
                        SolveCache* cache = nullptr);

}  // namespace cleave::solve
