#pragma once
/// Structural equality of steps: two are equal when rules and layer options cannot tell them apart. Names, scopes and
/// which tensors they read do not count; operator, arguments, operand types and result types do.
#include "solve/problem/variables.h"

namespace cleave::solve {

std::size_t structureHash(const Graph& graph, const Variables& variables, NodeId node);
bool sameStructure(const Graph& graph, const Variables& variables, NodeId a, NodeId b);

}  // namespace cleave::solve
