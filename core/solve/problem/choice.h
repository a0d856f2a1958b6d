#pragma once
/// What a step may take, and why it could take nothing: the answers that candidates, searches, traces and reasons
/// share.
#include "base/ids.h"
#include "solve/problem/pins.h"

#include <string>
#include <vector>

namespace cleave::solve {

using ChoiceId = Id<struct ChoiceTag>;
using ConflictId = Id<struct ConflictTag>;

/// What a Try assigns: placements of the node's results and, for a layer, its strategy (which also places its weight).
struct Choice {
  std::vector<Placement> results;
  rules::TakenStrategy strategy;
  std::string reason;
  std::vector<Placement> computedAs;  ///< beside `results` where one was redistributed (Problem::redistributable); else
                                      ///< empty
  bool operator==(const Choice& other) const;
};

/// Why a node cannot be assigned: a sentence and the values whose placements cause it.
struct ConflictRecord {
  NodeId node;
  std::string reason;
  std::vector<ValueId> culprits;
  std::vector<std::string> pins;  ///< texts of the pins involved, "lm_head=row"
  /// True when no node is to blame: what all steps together hold is more than the budget.
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
