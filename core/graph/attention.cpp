#include "graph/attention.h"

#include "graph/operators.h"

#include <algorithm>
#include <array>

namespace cleave::graph {
namespace {

ValueId operandAt(const Node& node, std::size_t position) {
  const auto* value = node.args.size() > position ? std::get_if<ValueId>(&node.args[position]) : nullptr;
  return value ? *value : ValueId();
}

bool repeatsOperand(std::string_view op) {
  static constexpr std::array kOps{
      "aten::clone",
      "aten::contiguous",
      "aten::repeat",
      "aten::repeat_interleave.self_int",
      "aten::tile",
      "aten::reshape",
      "aten::flatten.using_ints",
      "aten::_unsafe_view",
      "aten::broadcast_to",
      "aten::expand_as",
  };
  return isAliasing(op) || std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

}  // namespace

bool isAttention(std::string_view op) {
  return op.starts_with("aten::") && op.find("scaled_dot_product") != std::string_view::npos;
}

std::optional<Heads> headsOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::Call || !isAttention(graph.opName(node))) return std::nullopt;
  const ValueId query = operandAt(node, 0), key = operandAt(node, 1);
  if (!query.isValid() || !key.isValid() || graph.shapeOf(query).size() < 3 || graph.shapeOf(key).size() < 3)
    return std::nullopt;
  const Shape& queries = graph.shapeOf(query);
  const Shape& keys = graph.shapeOf(key);
  Heads heads{queries[queries.size() - 3], keys[keys.size() - 3]};
  const std::int64_t repeated = elementCount(keys), made = elementCount(graph.shapeOf(beforeRepetition(graph, key)));
  if (made > 0 && repeated % made == 0 && heads.keyValue % (repeated / made) == 0) heads.keyValue /= repeated / made;
  return heads;
}

ValueId beforeRepetition(const Graph& graph, ValueId value) {
  ValueId smallest = value;
  while (true) {
    const Node& producer = graph.node(graph.value(value).producer);
    if (producer.kind != NodeKind::Call || !repeatsOperand(graph.opName(producer))) return smallest;
    value = operandAt(producer, 0);
    if (!value.isValid() || graph.node(graph.value(value).producer).kind != NodeKind::Call) return smallest;
    if (sizeInBytes(graph.value(value).type) <= sizeInBytes(graph.value(smallest).type)) smallest = value;
  }
}

}  // namespace cleave::graph
