#pragma once
/// Pins, the user's demands on a plan, as text: `NAME=PLACEMENT` for values, `LAYER=STRATEGY` for layers.
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

/// A demand: `NAME=PLACEMENT` for values, `LAYER=column|row|vocab|expert|replicated|<strategy>` for layers. `*` in the
/// name matches any characters, and `!=` forbids. `column`, `row`, `vocab`, `expert` and `replicated` mean every
/// strategy of that axis, so `column` includes `gather+column`. With `==` a strategy means only itself.
struct Pin {
  std::string pattern;
  bool forbids = false;
  std::optional<Placement> placement;       ///< a value pin
  std::vector<rules::Strategy> strategies;  ///< a layer pin: the allowed (or forbidden) strategies
  std::string text;                         ///< as the user wrote it
  /// The demanded strategy or placement as the user wrote it: "column".
  std::string_view wanted() const;
  /// True if a value pin allows the placement. `!=R` also forbids as many copies as ranks.
  bool admits(const Placement& placement, int ranks) const;
  /// BadUsage names the accepted forms if the text is not a pin.
  static Result<Pin> parse(std::string_view text);
  bool operator==(const Pin&) const = default;
};
/// Every strategy word of layer pins, axes first: "column, row, ..., column+gather, ..., in-expert".
std::string strategyWords();
/// Text of the pin that demands only this strategy: "k_proj==column", "k_proj=gather+column".
std::string demandFor(std::string_view name, rules::Strategy strategy);

/// The targets of a pin in ascending order. A strategy pin matches layers by the name of the layer or of its result. A
/// placement pin matches values by name; if no value matches, a layer's name means its result.
struct PinTargets {
  std::vector<NodeId> layers;
  std::vector<ValueId> values;
};
PinTargets targetsOf(const Pin& pin, const Graph& graph);

/// Calls whose operator's name ("aten::mul.Tensor") matches the pattern, in ascending order.
std::vector<NodeId> nodesWithOperator(std::string_view pattern, const Graph& graph);
/// Computed values that match a pattern of Problem::redistributable by name, in ascending order; if no value matches, a
/// layer's name means its result. Inputs, parameters and constants never match, because they are not computed.
std::vector<ValueId> redistributableValues(std::string_view pattern, const Graph& graph);

}  // namespace cleave::solve
