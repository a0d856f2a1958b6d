#pragma once
/// Which modules of numbered lists are equal (module_tree.h defines "equal"). Private to the module tree.
///
/// A module's signature is a list of numbers that is interned as a whole, so that equal ids mean equal modules.
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace cleave::views {

inline constexpr std::uint32_t kNoStructure = 0xFFFFFFFF;

/// By ScopeId. kNoStructure for modules without a numbered neighbour. `below`: the modules right below each scope.
std::vector<std::uint32_t> structuresOf(const graph::Graph& graph,
                                        const std::vector<std::vector<graph::ScopeId>>& below);

}  // namespace cleave::views
