#pragma once
/// Phrases that conflicts, decisions and event lines share. Names are in back quotes, so that views can turn them into
/// links.
#include "solve/problem/problem.h"

#include <string>

namespace cleave::solve {

/// "replicated (R)", "split on its last dimension (S(2))", "split on dimension 1 (S(1))".
std::string inWords(const Placement& placement, const graph::Shape& shape);
/// `name` in back quotes.
std::string ticked(std::string_view name);
/// The name of a node for users: a layer's module ("lm_head"), else its first result.
std::string nameOf(const Graph& graph, NodeId node, bool isLayer);
/// The memory limit of a plan: "the memory budget of 64 GiB", or "`h100` of 80 GiB" if the user set no budget.
std::string budgetName(const CostSettings& cost);
/// "1,234,567"
std::string withThousands(std::uint64_t number);
/// "model.layers.17.mlp.up_proj" → "model.layers.*.mlp.up_proj": the pattern for equal layers of repeated blocks. Pins
/// accept it.
std::string withoutIndices(std::string_view name);
/// The sentence with a lowercase first word, for use after a colon or a semicolon.
std::string asClause(std::string sentence);
/// "a", "a or b", "a, b or c"
std::string joined(const std::vector<std::string>& items, std::string_view lastSeparator);

}  // namespace cleave::solve
