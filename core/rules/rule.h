#pragma once
/// Rules: what an operator makes of the placements of its operands.
///
/// A rule is a pure function (operator, shapes, attributes, operand placements, world size) → the placements its
/// results may have, best first, each with a reason in words, or a conflict that names the operands that cause it.
/// Soundness is the only promise that matters: for each claim, running the operator on each rank's shards (with
/// `localArguments`) gives exactly the shards of the whole result. No rule moves data between ranks; only layers do
/// (see strategies.h).
///
/// One family of operators = one file with one table of entries; `applyRule` looks the operator up. An operator without
/// an entry: all operands R → all results R; else a conflict that names the operator. Pure and thread-safe.
#include "graph/graph.h"
#include "rules/placement.h"

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cleave::rules {

/// One application: a Call node of a verified graph whose operands are placed as given, in the order of
/// graph::operandsOf.
struct OpCall {
  const graph::Graph& graph;
  graph::NodeId node;
  std::span<const Placement> operands;
  int worldSize = 1;
};

/// One allowed outcome: a placement for each result of the node.
struct Claim {
  std::vector<Placement> results;
  std::string reason;  ///< one clause: "the split dimension 1 is kept", "both inputs are split alike"
  /// An operand whose placement alone fixes the results: however the others are placed, they are these or there is a
  /// conflict. -1: every operand counts.
  int decider = -1;
};

/// No placement of the results is true without moving data.
struct Conflict {
  std::string reason;  ///< one sentence for a newcomer, with the numbers
  /// Operand indices that cause it, ascending, without duplicates. They suffice: as long as these are placed so there
  /// is a conflict, wherever the other operands are.
  std::vector<int> culprits;
  std::vector<std::vector<int>> further;  ///< other sets of operands that suffice as well, each like `culprits`
  bool isDeclined = false;  ///< the rule does not follow splits through such a call, though there may be one
};

using Verdict = std::variant<std::vector<Claim>, Conflict>;

Verdict applyRule(const OpCall& call);

/// Arguments for one rank's shard: sizes in views, expands, creations divided as the results' placements say. All ranks
/// use the same arguments. Tensor arguments stay as they are (ids of `call.graph`).
std::vector<graph::Argument> localArguments(const OpCall& call, std::span<const Placement> results);

/// For tests of what finds wrong plans: the operator that the environment names as CLEAVE_TEST_BROKEN_RULE has a rule
/// that is wrong on purpose, which says of any split operand that the results are split alike, or whole where they
/// cannot be. Empty: none has.
std::string_view brokenRule();

/// True when `applyRule` knows the operator ("aten::add.Tensor").
bool hasRule(std::string_view op);
/// Of a call that has none: "no rule for `aten::_cdist_forward` yet (model.py:6: return torch.cdist(x, x))", with the
/// line of the model's code where it is known.
std::string noRule(const graph::Graph& graph, graph::NodeId node);

struct Family {
  std::string_view name;     ///< "pointwise", "reduction", "view", ...
  std::string_view summary;  ///< one line: what the family's rule says
  std::vector<std::string_view> ops;
};
/// All families with their operators, for `cleave-cli rules` and for tests; order is stable.
const std::vector<Family>& families();

}  // namespace cleave::rules
