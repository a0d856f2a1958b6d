#pragma once
/// The candidates of one node for given placements of its operands: the rules' claims or the layer's options, without
/// those that do not fit the operands and those that pins remove. Engines cache them (candidate_table.h). The decision
/// panel computes them again to explain the candidates that were left out. Pure and thread-safe.
#include "solve/problem/choice.h"
#include "solve/problem/variables.h"

#include <span>

namespace cleave::solve {

/// A choice that is left out before the search tries it.
struct RuledOut {
  Choice choice;
  std::string why;  ///< a clause: "needs its input split on its last dimension (S(2)), but `mul_14` is R"
  std::string pin;  ///< text of the pin that removed it; empty if it does not fit the operands
};

/// A demand of the user that removes candidates: a pin, or a rule switched off.
struct Demand {
  bool isRule = false;
  std::uint32_t index = 0;  ///< into Problem::pins or Problem::rulesOff
  auto operator<=>(const Demand&) const = default;
};

struct Candidates {
  std::vector<Choice> open;  ///< in the order of the search
  std::vector<RuledOut> ruledOut;
  ConflictRecord conflict;  ///< valid iff `open` is empty
  /// True if `open` is empty for all placements of the operands, for example because the sizes forbid a pin.
  bool isFixed = false;
  /// Demands that affect `open`, in ascending order. If `open` is empty, they and the placements of the conflict's
  /// culprits are the cause. The placements of other operands do not matter.
  std::vector<Demand> demands;
  /// If `open` is empty: other sets of operands that also cause this, without any demand.
  std::vector<std::vector<ValueId>> furtherCulprits;
  /// Index of the operand whose placement alone decides `open`: whatever the other placements are, `open` is equal to
  /// this one or empty. -1: all operands matter.
  int decider = -1;
};

/// `reads`: placements of variables.reads(node), in that order.
Candidates candidatesOf(const Problem& problem, const Variables& variables, NodeId node,
                        std::span<const Placement> reads);

/// True if the pin at this index of Problem::pins allows the choice of `node`.
bool admits(const Problem& problem, const Variables& variables, std::uint32_t pin, NodeId node, const Choice& choice);

}  // namespace cleave::solve
