#pragma once
/// The choice of a step, and the conflict of a step without a choice. Candidates, searches, traces and explanations
/// share them.
#include "base/ids.h"
#include "solve/problem/pins.h"

#include <string>
#include <vector>

namespace cleave::solve {

using ChoiceId = Id<struct ChoiceTag>;
using ConflictId = Id<struct ConflictTag>;

/// The assignment that a Try makes: placements of the node's results and, for a layer, its strategy, which also places
/// its weight.
struct Choice {
  std::vector<Placement> results;
  rules::ChosenStrategy strategy;
  std::string reason;
  std::vector<Placement> computedAs;  ///< placements before redistribution (Problem::redistributable); empty if no
                                      ///< result is redistributed
  bool operator==(const Choice& other) const;
};

/// The reason why a node has no choice: a sentence, and the values whose placements cause it.
struct ConflictRecord {
  NodeId node;
  std::string reason;
  std::vector<ValueId> culprits;
  std::vector<std::string> pins;  ///< texts of the pins involved, "lm_head=row"
  /// True if the conflict concerns the whole plan: the memory of all steps together exceeds the budget.
  bool isOfWholePlan() const { return culprits.empty() && pins.empty(); }
  bool operator==(const ConflictRecord& other) const;
};

/// Calls `visit` with the placements that a choice gives to variables.writes(node), in that order.
template <class Visit>
void forEachPlacement(const Choice& choice, Visit visit) {
  for (const Placement& placement : choice.results) visit(placement);
  if (!choice.strategy) return;
  visit(choice.strategy->weight);
  visit(choice.strategy->bias);
  if (choice.strategy->down) visit(*choice.strategy->down);
}
/// The same as a list.
std::vector<Placement> placementsOf(const Choice& choice);

}  // namespace cleave::solve
