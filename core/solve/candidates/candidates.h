#pragma once
/// What one node may take when its operands are placed as given: the rules' claims or the layer's options, less what
/// does not fit its operands and what pins remove. Engines ask here once per (node, operand placements) and remember
/// the answer; the decision panel asks again to show what was left out and why. Pure and thread-safe.
#include "solve/problem/choice.h"
#include "solve/problem/variables.h"

#include <span>

namespace cleave::solve {

/// A strategy that was considered and left out before the search tried it.
struct RuledOut {
  Choice choice;
  std::string why;  ///< "needs its input split on its last dimension (S(2)), but `mul_14` is R"
  std::string pin;  ///< text of the pin that removed it; empty: it does not fit the operands
};

/// A demand of the user that takes something away: a pin, or a rule switched off.
struct Demand {
  bool isRule = false;
  std::uint32_t index = 0;  ///< into Problem::pins or Problem::rulesOff
  auto operator<=>(const Demand&) const = default;
};

struct Candidates {
  std::vector<Choice> open;  ///< in the order in which the search tries them
  std::vector<RuledOut> ruledOut;
  ConflictRecord conflict;  ///< meaningful iff `open` is empty
  bool isFixed = false;     ///< `open` is empty whatever the operands' placements are: a pin that the sizes forbid
  /// Demands without which `open` could be another one; ascending. Where `open` is empty, they and the placements of
  /// the conflict's culprits alone make it so, whatever the other operands' placements are.
  std::vector<Demand> demands;
  /// Where `open` is empty: other sets of operands that suffice as the culprits do, without any demand.
  std::vector<std::vector<ValueId>> furtherCulprits;
  /// Index of a read whose placement alone fixes `open`: however the other operands are placed, it is this or empty.
  /// -1: all count.
  int decider = -1;
};

/// `reads`: placements of variables.reads(node), in that order.
Candidates candidatesOf(const Problem& problem, const Variables& variables, NodeId node,
                        std::span<const Placement> reads);

/// Whether the pin at this index of Problem::pins, which may speak of `node` or of what it places, leaves it the
/// choice.
bool admits(const Problem& problem, const Variables& variables, std::uint32_t pin, NodeId node, const Choice& choice);

}  // namespace cleave::solve
