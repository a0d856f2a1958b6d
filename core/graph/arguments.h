#pragma once
/// Arguments of a call, read by their position in the operator's schema. Foreign graphs may leave arguments out and
/// put anything anywhere: what is absent, None or of another kind is not there.
#include "graph/graph.h"

#include <optional>

namespace cleave::graph {

/// Null when it is absent or None.
const Argument* argumentAt(const Node& node, std::size_t position);
/// A tensor; an invalid id when there is none.
ValueId operandAt(const Node& node, std::size_t position);
std::optional<std::int64_t> integerAt(const Node& node, std::size_t position);
/// A real number or an integer.
std::optional<double> numberAt(const Node& node, std::size_t position);
std::optional<bool> flagAt(const Node& node, std::size_t position);
/// Null when there is no list of integers.
const std::vector<std::int64_t>* integersAt(const Node& node, std::size_t position);

/// A dimension counted from the front, [0, rank); a scalar counts as having one. nullopt: it is out of range.
std::optional<int> wrapDim(std::int64_t dim, int rank);
/// Where a permute (argument 1 is the order) puts dimension `dim`; nullopt: nowhere, or there is no order.
std::optional<int> placeAfterPermute(const Node& node, int dim);

}  // namespace cleave::graph
