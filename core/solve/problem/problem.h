#pragma once
/// The problem that engines solve, and its solution.
///
/// The search variables are the nodes in topological order. A layer chooses a strategy, and any other node chooses one
/// of its rule's claims. Inputs and constants are R. A parameter has the placement of its layer's strategy, or R if no
/// layer owns it. Tied parameters must have one placement.
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
  /// Patterns of operators ("aten::mul.Tensor", "*softmax*") whose rules are switched off. They need all operands
  /// replicated.
  std::vector<std::string> rulesOff;
  /// Patterns of values that may be redistributed right after they are computed. An even split is gathered (S(d) to R,
  /// an all-gather), or a replicated value is cut (R to S(d), no traffic). All other values change their placement only
  /// in layers.
  std::vector<std::string> redistributable;
  CostSettings cost;  ///< settings of the costs of every plan, which `optimal` minimises
  /// BadUsage names the first pin, rule or redistribution without a match in the graph, and similar names.
  Result<void> checkPins() const;
};

/// A placement for every value, a strategy for every layer.
struct Solution {
  std::vector<Placement> placements;              ///< by ValueId
  std::vector<rules::ChosenStrategy> strategies;  ///< by NodeId; nullopt: not a layer
  std::map<ValueId, Placement> computedAs;  ///< placements of redistributed values before redistribution; `placements`
                                            ///< has those after it
  const Placement& of(ValueId value) const { return placements[value.index()]; }
  /// The placement that the operator gives to the value; `of` is the placement that readers get.
  const Placement& computed(ValueId value) const {
    const auto found = computedAs.find(value);
    return found == computedAs.end() ? of(value) : found->second;
  }
};

}  // namespace cleave::solve
