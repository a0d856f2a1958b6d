#pragma once
/// Changes that a user can make to a problem, and the plan after each. Every change that is offered was tried here.
///
///     CLEAVE_TRY(const Tried tried, tryChange(problem, {ChangeKind::AddPin, "lm_head=column"}, engine, work));
///     if (tried.answer == Answer::Holds) fmt::print("then each step takes {}", timeText(tried.figures.femtoseconds));
#include "solve/candidates/work.h"
#include "solve/engine.h"

#include <string>

namespace cleave::solve {

/// "lift the pin lm_head=row", "use the full candidate set", ...: an imperative clause without a full stop.
std::string toText(const Change& change);
/// BadUsage if the change does not fit the problem.
Result<Problem> applied(const Problem& problem, const Change& change);

/// Figures of a plan, for a card that compares before and after.
struct Figures {
  bool hasPlan = false;
  std::size_t splitLayers = 0, layers = 0;  ///< layers with a weight; split: each rank has only part of it
  std::int64_t rankBytes = 0;               ///< PlanCost::bytes
  Femtoseconds femtoseconds;                ///< PlanCost::femtoseconds
  std::size_t gathered = 0;                 ///< split layers whose result is gathered after the product
};
Figures figuresOf(const Problem& problem, const Solution* solution);

/// The result of a change: it was applied, solved with the user's engine, and its plan was checked.
struct Tried {
  Answer answer = Answer::Unknown;
  std::optional<Solution> solution;  ///< iff Holds
  Figures figures;                   ///< of that plan
  bool isOverBudget = false;         ///< Fails only because of the budget
  std::uint64_t conflicts = 0;       ///< number of conflicts in its search
};
/// BadUsage as `applied`. `cache` is shared by tries on one graph; it may be null.
Result<Tried> tryChange(const Problem& problem, const Change& change, Engine engine, Work& work,
                        SolveCache* cache = nullptr);

}  // namespace cleave::solve
