#pragma once
/// What the user demands of a plan, as text: `NAME=PLACEMENT` for values, `LAYER=STRATEGY` for layers.
#include "base/result.h"
#include "graph/graph.h"
#include "rules/placement.h"
#include "rules/strategies.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::solve {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using rules::Placement;

/// What the user demands: `NAME=PLACEMENT` for values, `LAYER=column|row|vocab|expert|replicated|<strategy>` for
/// layers; `*` in the name matches any characters; `!=` forbids instead. `column`, `row`, `vocab`, `expert` and
/// `replicated` mean every strategy of that axis, as `column` does `gather+column`; with `==` a strategy means itself
/// alone.
struct Pin {
  std::string pattern;
  bool forbids = false;
  std::optional<Placement> placement;       ///< a value pin
  std::vector<rules::Strategy> strategies;  ///< a layer pin: any of these
  std::string text;                         ///< as the user wrote it
  /// What is demanded, as the user wrote it: "column".
  std::string_view wanted() const;
  /// A value pin: true where a value may be placed so. As many copies as ranks are no way around `!=R`.
  bool admits(const Placement& placement, int ranks) const;
  /// BadUsage says what is accepted when the text is neither.
  static Result<Pin> parse(std::string_view text);
};
/// Every word that a layer's pin takes, axes first: "column, row, ..., column+gather, ..., in-expert".
std::string strategyWords();
/// Text of the pin that demands this strategy and no other of its axis: "k_proj==column", "k_proj=gather+column".
std::string demandFor(std::string_view name, rules::Strategy strategy);

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

}  // namespace cleave::solve
