#pragma once
/// What is to be solved, and what a solution is.
///
/// The search variables are the nodes in topological order: a layer chooses a strategy, any other node one of its
/// rule's claims, an input or constant is R, a parameter is placed as its layer's strategy says (R when no layer owns
/// it). Tied parameters have one placement: a constraint.
#include "graph/graph.h"
#include "rules/rule.h"
#include "rules/strategies.h"
#include "solve/problem/cost_settings.h"
#include "solve/problem/pins.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cleave::solve {

struct Problem {
  std::shared_ptr<const Graph> graph;  ///< the ATen graph
  rules::StrategyContext context;      ///< world size, candidate set, sequence parallelism
  std::vector<Pin> pins;
  /// Patterns of operators ("aten::mul.Tensor", "*softmax*") whose rules are switched off: they want all operands
  /// whole.
  std::vector<std::string> rulesOff;
  /// Patterns of values that may change their placement right after they are computed: an even split is gathered
  /// (S(d) to R, an all-gather), or a whole value cut (R to S(d), no traffic). Else nothing but a layer changes a
  /// placement.
  std::vector<std::string> redistributable;
  CostSettings cost;  ///< what `optimal` minimises and every plan is priced with
  /// BadUsage names the first pin, rule or redistribution that matches nothing in the graph, and the nearest names.
  Result<void> checkPins() const;
};

/// A placement for every value, a strategy for every layer.
struct Solution {
  std::vector<Placement> placements;             ///< by ValueId
  std::vector<rules::TakenStrategy> strategies;  ///< by NodeId; nullopt: not a layer
  std::map<ValueId, Placement> computedAs;       ///< redistributed values: how they are computed; `placements` has what
                                                 ///< readers see
  const Placement& of(ValueId value) const { return placements[value.index()]; }
  /// How the operator leaves the value; `of` is what readers see.
  const Placement& computed(ValueId value) const {
    const auto found = computedAs.find(value);
    return found == computedAs.end() ? of(value) : found->second;
  }
};

}  // namespace cleave::solve
