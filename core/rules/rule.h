#pragma once
/// Rules: how an operator maps the placements of its operands to placements of its results.
///
/// A rule is a pure function of operator, shapes, attributes, operand placements and world size. It returns the
/// possible placements of the results, best first, each with a reason. Without a possible placement it returns a
/// conflict that names the operands that cause it. Every claim must be sound: running the operator on each rank's
/// shards (with `localArguments`) gives exactly the shards of the unsplit result. No rule moves data between ranks;
/// only layers do (see strategies.h).
///
/// Each family of operators has one file with one table of entries, and `applyRule` looks the operator up. An operator
/// without an entry supports replicated operands only; otherwise the conflict names the operator. Pure and thread-safe.
#include "graph/graph.h"
#include "rules/placement.h"
#include "rules/verdict.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rules {

Verdict applyRule(const OpCall& call);

/// Arguments for one rank's shard: sizes in views, expands and creations are divided according to the results'
/// placements. All ranks use the same arguments. Tensor arguments do not change (they are ids of `call.graph`).
std::vector<graph::Argument> localArguments(const OpCall& call, std::span<const Placement> results);

/// For tests of plan checks: the environment variable CLEAVE_TEST_BROKEN_RULE names an operator whose rule is wrong on
/// purpose. For a split operand that rule claims results with the same split, or replicated ones if they cannot be
/// split. Empty if it is not set.
std::string_view brokenRule();

/// True when `applyRule` knows the operator ("aten::add.Tensor").
bool hasRule(std::string_view op);
/// For an operator without a rule: "no rule for `aten::_cdist_forward` yet (model.py:6: return torch.cdist(x, x))",
/// with the line of the model's code if known.
std::string noRule(const graph::Graph& graph, graph::NodeId node);

struct Family {
  std::string_view name;     ///< "pointwise", "reduction", "view", ...
  std::string_view summary;  ///< one line: what the family's rule says
  std::vector<std::string_view> ops;
};
/// All families with their operators, for `cleave-cli rules` and for tests. The order is stable.
const std::vector<Family>& families();

}  // namespace cleave::rules
