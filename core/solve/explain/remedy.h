#pragma once
/// Changes that remove a conflict or improve a plan. Each is tried before it is offered, and carries the figures of the
/// plan before and after it.
///
///     for (const Remedy& remedy : remediesFor(*problem, result, &card, progress)) offerButton(remedy.text);
///     auto changed = applied(*problem, remedy.change);
///
/// The function is pure. Run it off the GUI thread: it solves once for each change.
#include "solve/explain/change.h"
#include "solve/explain/conflict_card.h"

#include <vector>

namespace cleave::solve {

struct Remedy {
  Change change;
  std::string text;  ///< what to do and what changes, with the numbers
  Figures before, after;
};

/// At most `most` changes that improve what the user lacks most: a plan, if the problem has no plan; less memory, if
/// the plan exceeds the budget; else less time or more split layers. A change is not offered if it costs both time and
/// memory, or if another one is better in time, memory and ranks. The text names what a change costs. The best come
/// first. A change that costs a greater share of time or memory than it saves of the other comes after them, and other
/// numbers of ranks come last. If no plan fits the budget, only changes of demands are offered;
/// pipeline/solve/what_fits.h reports other ranks, budgets and settings. `result`: the result of the problem. `card`:
/// the shown conflict, whose layers come first; may be null. With a card, a change also helps if the search then has no
/// conflict and the plan does not get worse. Each change was tried with `engine` (tryChange).
Result<std::vector<Remedy>> remediesFor(const Problem& problem, const SolveResult& result, Engine engine,
                                        const ConflictCard* card, const Progress& progress = {}, std::size_t most = 4);

}  // namespace cleave::solve
