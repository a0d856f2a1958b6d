#include "graph/attention.h"

#include "graph/arguments.h"
#include "graph/operators.h"

namespace cleave::graph {

std::optional<Heads> headsOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::Call || operatorOf(graph.opName(node)).cost != CostClass::Attention) return std::nullopt;
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
    if (producer.kind != NodeKind::Call || operatorOf(graph.opName(producer)).holds == Holds::New) return smallest;
    value = operandAt(producer, 0);
    if (!value.isValid() || graph.node(graph.value(value).producer).kind != NodeKind::Call) return smallest;
    if (graph.bytesOf(value) <= graph.bytesOf(smallest)) smallest = value;
  }
}

}  // namespace cleave::graph
