#pragma once
/// Words that conflicts, decisions and event lines share. Names stand in back quotes; a view may render them as links.
#include "solve/problem/problem.h"

#include <string>

namespace cleave::solve {

/// "replicated (R)", "split on its last dimension (S(2))", "split on dimension 1 (S(1))".
std::string inWords(const Placement& placement, const graph::Shape& shape);
/// `name` in back quotes.
std::string ticked(std::string_view name);
/// The name a user knows a node by: a layer's module ("lm_head"), else its first result.
std::string nameOf(const Graph& graph, NodeId node, bool isLayer);
/// What a plan must keep to: "the memory budget of 64 GiB", or where none was asked for "`h100` of 80 GiB".
std::string budgetName(const CostSettings& cost);
/// "1,234,567"
std::string withThousands(std::uint64_t number);
/// "model.layers.17.mlp.up_proj" → "model.layers.*.mlp.up_proj": equal layers of repeated blocks are spoken of once. A
/// pattern for pins.
std::string withoutIndices(std::string_view name);
/// A sentence to follow a colon or a semicolon: its first word begins small.
std::string asClause(std::string sentence);
/// "a", "a or b", "a, b or c"
std::string joined(const std::vector<std::string>& items, std::string_view lastSeparator);

}  // namespace cleave::solve
