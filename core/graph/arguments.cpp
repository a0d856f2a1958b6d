#include "graph/arguments.h"

#include <algorithm>

namespace cleave::graph {
namespace {

template <class T>
const T* heldAt(const Node& node, std::size_t position) {
  return position < node.args.size() ? std::get_if<T>(&node.args[position]) : nullptr;
}

template <class T>
std::optional<T> copyOf(const T* held) {
  return held ? std::optional<T>(*held) : std::nullopt;
}

}  // namespace

const Argument* argumentAt(const Node& node, std::size_t position) {
  if (position >= node.args.size()) return nullptr;
  const Argument& argument = node.args[position];
  return std::holds_alternative<std::monostate>(argument) ? nullptr : &argument;
}

ValueId operandAt(const Node& node, std::size_t position) {
  const auto* value = heldAt<ValueId>(node, position);
  return value ? *value : ValueId();
}

std::optional<std::int64_t> integerAt(const Node& node, std::size_t position) {
  return copyOf(heldAt<std::int64_t>(node, position));
}

std::optional<double> numberAt(const Node& node, std::size_t position) {
  if (const auto integer = integerAt(node, position)) return static_cast<double>(*integer);
  return copyOf(heldAt<double>(node, position));
}

std::optional<bool> flagAt(const Node& node, std::size_t position) { return copyOf(heldAt<bool>(node, position)); }

const std::vector<std::int64_t>* integersAt(const Node& node, std::size_t position) {
  return heldAt<std::vector<std::int64_t>>(node, position);
}

std::optional<int> wrapDim(std::int64_t dim, int rank) {
  const std::int64_t size = std::max(rank, 1);
  if (dim < -size || dim >= size) return std::nullopt;
  return static_cast<int>(dim < 0 ? dim + size : dim);
}

std::optional<int> placeAfterPermute(const Node& node, int dim) {
  const auto* order = integersAt(node, 1);
  for (std::size_t i = 0; order && i < order->size(); ++i) {
    if (wrapDim((*order)[i], static_cast<int>(order->size())) == dim) return static_cast<int>(i);
  }
  return std::nullopt;
}

}  // namespace cleave::graph
