#pragma once
/// Structural equality of steps: rules and layer options give the same result for equal steps. Operator, arguments,
/// operand types and result types count. Names, scopes and the identity of tensors do not.
#include "solve/problem/variables.h"

namespace cleave::solve {

/// Adds `hash` to `seed`, like boost::hash_combine.
inline void mixHash(std::size_t& seed, std::size_t hash) {
  seed ^= hash + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2);
}

std::size_t structureHash(const Graph& graph, const Variables& variables, NodeId node);
bool sameStructure(const Graph& graph, const Variables& variables, NodeId a, NodeId b);

}  // namespace cleave::solve
