#pragma once
/// A question to a rule, and its answer: one call with the placements of its operands, and the possible placements of
/// its results or a conflict. rule.h describes what an answer promises.
#include "graph/graph.h"
#include "rules/placement.h"

#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cleave::rules {

/// One call: a Call node of a verified graph, with the placement of each operand in the order of graph::operandsOf.
struct OpCall {
  const graph::Graph& graph;
  graph::NodeId node;
  std::span<const Placement> operands;
  int worldSize = 1;
};

/// One possible outcome: a placement for each result of the node.
struct Claim {
  std::vector<Placement> results;
  std::string reason;  ///< one clause: "the split dimension 1 is kept", "both inputs are split alike"
  /// An operand whose placement alone fixes the results: for all placements of the others, the results are these or
  /// there is a conflict. -1: every operand counts.
  int decider = -1;
};

/// No placement of the results is possible without moving data.
struct Conflict {
  std::string reason;  ///< one sentence for a newcomer, with the numbers
  /// Indices of the operands that cause the conflict, ascending, without duplicates. They suffice: these placements
  /// conflict with all placements of the other operands.
  std::vector<int> culprits;
  std::vector<std::vector<int>> further;  ///< other sets of operands that suffice, in the form of `culprits`
  bool isDeclined = false;  ///< the rule does not follow splits through this call, although a sound result may exist
};

using Verdict = std::variant<std::vector<Claim>, Conflict>;

}  // namespace cleave::rules
