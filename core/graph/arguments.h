#pragma once
/// Arguments of a call, read by their position in the operator's schema. Exported graphs may omit arguments or contain
/// any value. An argument that is absent, None or of another kind counts as missing.
#include "graph/graph.h"

#include <optional>
#include <vector>

namespace cleave::graph {

/// Null if the argument is absent or None.
const Argument* argumentAt(const Node& node, std::size_t position);
/// A tensor argument; an invalid id if it is missing.
ValueId operandAt(const Node& node, std::size_t position);
std::optional<std::int64_t> integerAt(const Node& node, std::size_t position);
/// A real number or an integer.
std::optional<double> numberAt(const Node& node, std::size_t position);
std::optional<bool> flagAt(const Node& node, std::size_t position);
/// Null if the argument is not a list of integers.
const std::vector<std::int64_t>* integersAt(const Node& node, std::size_t position);

/// Replaces each tensor in arguments, also those in lists, in their order. Absent tensors stay.
template <class Change>
void changeOperands(std::vector<Argument>& args, const Change& change) {
  const auto apply = [&](ValueId& value) {
    if (value.isValid()) value = change(value);
  };
  for (Argument& argument : args) {
    if (auto* value = std::get_if<ValueId>(&argument)) apply(*value);
    if (auto* list = std::get_if<ValueList>(&argument)) {
      for (ValueId& value : *list) apply(value);
    }
  }
}

/// A dimension counted from the front, [0, rank). A scalar has rank 1. nullopt if it is out of range.
std::optional<int> wrapDim(std::int64_t dim, int rank);
/// The position of dimension `dim` after a permute (argument 1 is the order). nullopt if the order is missing or lacks
/// it.
std::optional<int> placeAfterPermute(const Node& node, int dim);

}  // namespace cleave::graph
