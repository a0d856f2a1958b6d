#pragma once
/// What is to be solved, and what a solution is.
///
/// The search variables are the nodes in topological order: a layer chooses a strategy, any other node one of its rule's
/// claims, an input or constant is R, a parameter lies as its layer's strategy says (R when no layer owns it). Tied parameters have one
/// placement: a constraint.
#include "graph/graph.h"
#include "rules/rule.h"
#include "rules/strategies.h"
#include "solve/cost/settings.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using rules::Placement;

/// What the user demands: `NAME=PLACEMENT` for values, `LAYER=column|row|vocab|replicated|<strategy>` for layers;
/// `*` in the name matches any characters; `!=` forbids instead. `column`, `row`, `vocab` and `replicated` mean every strategy of that axis,
/// as `column` does `gather+column`; with `==` a strategy means itself alone.
struct Pin {
  std::string pattern;
  bool forbids = false;
  std::optional<Placement> placement;        ///< a value pin
  std::vector<rules::Strategy> strategies;   ///< a layer pin: any of these
  std::string text;                          ///< as the user wrote it
  /// What is demanded, as the user wrote it: "column".
  std::string_view wanted() const;
  /// A value pin: true where a value may lie so. As many copies as ranks are no way around `!=R`.
  bool admits(const Placement& placement, int ranks) const;
  /// BadUsage with the accepted forms when the text is neither.
  static Result<Pin> parse(std::string_view text);
};
/// Text of the pin that demands this strategy and no other of its axis: "k_proj==column", "k_proj=gather+column".
std::string demandFor(std::string_view name, rules::Strategy strategy);

/// True when the pattern (`*` matches any characters) covers the whole name.
bool matches(std::string_view pattern, std::string_view name);

/// What a pin speaks of: layers for a strategy pin (by layer name or by the name of the result), values for a placement
/// pin (by value name; a layer's name stands for its result where no value has that name). Ascending.
struct PinTargets {
  std::vector<NodeId> layers;
  std::vector<ValueId> values;
};
PinTargets targetsOf(const Pin& pin, const Graph& graph);

/// Calls whose operator's name ("aten::mul.Tensor") the pattern covers. Ascending.
std::vector<NodeId> nodesWithOperator(std::string_view pattern, const Graph& graph);
/// Values that a pattern of Problem::redistributable speaks of: by name (a layer's name stands for its result where no
/// value has that name). Inputs, parameters and constants are given, not computed, so never they. Ascending.
std::vector<ValueId> redistributableValues(std::string_view pattern, const Graph& graph);

struct Problem {
  std::shared_ptr<const Graph> graph;  ///< the ATen graph
  rules::StrategyContext context;      ///< world size, menu, sequence parallelism
  std::vector<Pin> pins;
  /// Patterns of operators ("aten::mul.Tensor", "*softmax*") whose rules are switched off: they want all operands whole.
  std::vector<std::string> rulesOff;
  /// Patterns of values that may change their placement right after they are computed: an even split is gathered
  /// (S(d) to R, an all-gather), or a whole value cut (R to S(d), no traffic). Else nothing but a layer changes a placement.
  std::vector<std::string> redistributable;
  CostSettings cost;                   ///< what `optimal` minimises and every plan is priced with
  /// BadUsage names the first pin, rule or redistribution that matches nothing in the graph, and the nearest names.
  Result<void> checkPins() const;
};

/// A placement for every value, a strategy for every layer.
struct Solution {
  std::vector<Placement> placements;                            ///< by ValueId
  std::vector<rules::TakenOption> strategies;                   ///< by NodeId; nullopt: not a layer
  std::map<ValueId, Placement> computedAs;  ///< redistributed values: how they are computed; `placements` has what readers see
  const Placement& of(ValueId value) const { return placements[value.index()]; }
  /// How the operator leaves the value; `of` is what readers see.
  const Placement& computed(ValueId value) const {
    const auto found = computedAs.find(value);
    return found == computedAs.end() ? of(value) : found->second;
  }
};

}  // namespace cleave::solve
