#pragma once
/// Which modules of numbered lists are equal; module_tree.h says what that means. Private to the module tree.
///
/// A module's signature is a list of numbers, interned whole, so that equal ids mean equal modules.
#include "views/graph/model/module_tree.h"

namespace cleave::views {

inline constexpr std::uint32_t kNoStructure = 0xFFFFFFFF;

/// By ScopeId; kNoStructure for modules without a numbered neighbour. `below`: the modules right below each scope.
std::vector<std::uint32_t> structuresOf(const graph::Graph& graph, const std::vector<std::vector<ScopeId>>& below);

}  // namespace cleave::views
