#pragma once
/// What a user can change so that a conflict goes away, each tried before it is offered: a remedy carries the figures
/// of the plan before and after it.
///
///     for (const Remedy& remedy : remediesFor(*problem, result, &card, progress)) offerButton(remedy.text);
///     auto changed = applied(*problem, remedy.change);
///
/// Pure; run it off the GUI thread: it solves once for each change it considers.
#include "solve/explain/change.h"
#include "solve/explain/decision.h"

#include <vector>

namespace cleave::solve {

struct Remedy {
  Change change;
  std::string text;  ///< what to do and what it brings, one sentence with the numbers
  Figures before, after;
};

/// Changes that bring what the user lacks, at most `most`: a plan where there is none; else less memory where the plan
/// is over the budget; else less time or more that is split. None that takes longer and holds more than the plan there
/// is, none that another beats in time, memory and ranks at once. What one gives up its sentence says as the price.
/// Best first by what is lacking, those behind that give up a greater share of time or memory than they bring of the
/// other; other numbers of ranks come last. Where the budget leaves no plan these are demands alone: what other ranks,
/// budgets and settings bring, pipeline/what_fits.h says. `result`: what the problem gave; `card`: the conflict the
/// user looks at, whose layers come first; may be null. With a card a change also helps where the search then meets no
/// conflict and nothing gets worse. Each was tried with `engine` (tryChange).
Result<std::vector<Remedy>> remediesFor(const Problem& problem, const SolveResult& result, Engine engine,
                                        const ConflictCard* card, const Progress& progress = {}, std::size_t most = 4);

}  // namespace cleave::solve
