#pragma once
/// What one node may take when its operands lie as given: the rules' claims or the layer's options, less what does not fit
/// its operands and what pins remove. Engines ask here once per (node, operand placements) and remember the answer; the
/// decision panel asks again to show what was left out and why. Pure and thread-safe.
#include "solve/trace.h"
#include "solve/variables.h"

#include <span>

namespace cleave::solve {

/// A form that was considered and left out before the search tried it.
struct RuledOut {
  Choice choice;
  std::string why;  ///< "needs its input split on its last dimension (S(2)), but `mul_14` is R"
  std::string pin;  ///< text of the pin that removed it; empty: it does not fit the operands
};

struct Candidates {
  std::vector<Choice> open;  ///< in the order in which the search tries them
  std::vector<RuledOut> ruledOut;
  ConflictRecord conflict;   ///< meaningful iff `open` is empty
  bool isFixed = false;      ///< `open` is empty whatever the operands' placements are: a pin that the sizes forbid
};

/// `reads`: placements of variables.reads(node), in that order.
Candidates candidatesOf(const Problem& problem, const Variables& variables, NodeId node, std::span<const Placement> reads);

/// Placements that a choice gives to variables.writes(node), in that order.
std::vector<Placement> placementsOf(const Choice& choice);

}  // namespace cleave::solve
