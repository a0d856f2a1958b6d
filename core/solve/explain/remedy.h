#pragma once
/// What a user can change so that a conflict goes away, each tried before it is offered: a remedy carries the figures of the
/// plan before and after it.
///
///     for (const Remedy& remedy : remediesFor(*problem, result, &card, progress)) offerButton(remedy.text);
///     auto changed = applied(*problem, remedy.change);
///
/// Pure; run it off the GUI thread: it solves once for each change it considers.
#include "solve/decision.h"
#include "solve/engine.h"

#include <string>
#include <vector>

namespace cleave::solve {

enum class ChangeKind : std::uint8_t {
  AddPin,          ///< `argument`: text for Pin::parse
  LiftPin,         ///< `argument`: text of a pin of the problem
  RuleOn,          ///< `argument`: an entry of Problem::rulesOff
  Redistribute,    ///< `argument`: a pattern of values for Problem::redistributable
  FullMenu,        ///< all placements and strategies instead of the reference's
  SequenceParallel,///< `argument`: "off", "on" or "auto"
  Ranks,           ///< `argument`: a world size
};
/// One change to a problem.
struct Change {
  ChangeKind kind = ChangeKind::AddPin;
  std::string argument;
  bool operator==(const Change&) const = default;
};
/// "lift the pin lm_head=row", "use the full menu", ...: an imperative clause without a full stop.
std::string toText(const Change& change);
/// BadUsage when the change does not fit the problem.
Result<Problem> applied(const Problem& problem, const Change& change);

/// A plan in three figures, for a card that shows before and after.
struct Figures {
  bool hasPlan = false;
  std::size_t splitLayers = 0, layers = 0;  ///< layers with a parameter
  std::int64_t rankBytes = 0;               ///< PlanCost::bytes
  Femtoseconds femtoseconds;                ///< PlanCost::femtoseconds
};
Figures figuresOf(const Problem& problem, const Solution* solution);

struct Remedy {
  Change change;
  std::string text;      ///< what to do and what it brings, one sentence with the numbers
  Figures before, after;
};

/// Changes that help, best first (a plan where there was none; then more split layers, fewer bytes a rank, less time), at
/// most `most`. `result`: what the problem gave; `card`: the conflict the user looks at, whose layers come first; may be null.
/// Every remedy was tried with `engine` (for `reference` with `learning`, which answers the same): its plan holds, and there was
/// none before, or it splits more layers; with a card also where it splits as many and its search meets no conflict.
/// Stops trying after two seconds.
Result<std::vector<Remedy>> remediesFor(const Problem& problem, const SolveResult& result, Engine engine, const ConflictCard* card,
                                        const Progress& progress = {}, std::size_t most = 4);

}  // namespace cleave::solve
