#include "graph/graph.h"

#include "base/femtoseconds.h"

namespace cleave::graph {

std::int64_t Graph::heldBytes(ValueId id, std::int64_t count) const {
  const Value& held = value(id);
  const auto packed = packedBytes.empty() ? packedBytes.end() : packedBytes.find(held.name);
  if (packed == packedBytes.end()) return count * itemSize(held.type.dtype);
  const std::int64_t whole = elementCount(held.type.shape);
  if (whole == 0) return 0;
  return static_cast<std::int64_t>((Wide{packed->second} * count + whole - 1) / whole);
}

std::int64_t Graph::heldBytes(ValueId id) const { return heldBytes(id, elementCount(shapeOf(id))); }

void fillUsers(Graph& graph) {
  for (Value& value : graph.values) value.users.clear();
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    forEachOperand(graph.node(id), [&](ValueId operand) {
      if (operand.index() >= graph.values.size()) return;
      auto& users = graph.values[operand.index()].users;
      if (users.empty() || users.back() != id) users.push_back(id);
    });
  }
}

bool isReal(const Graph& graph, ValueId value) { return isFloatingPoint(graph.value(value).type.dtype); }

const std::string& Graph::opName(const Node& n) const {
  static const std::string kNone;
  return n.kind == NodeKind::Call ? ops[n.op.index()] : kNone;
}

const std::string& Graph::sourceOf(const Node& n) const {
  static const std::string kNone;
  return n.source.isValid() ? sources[n.source.index()] : kNone;
}

ValueId Graph::findValue(std::string_view wanted) const {
  for (ValueId id : idRange<ValueId>(values.size())) {
    if (value(id).name == wanted) return id;
  }
  return {};
}

ScopeId Graph::findScope(std::string_view path) const {
  for (ScopeId id : idRange<ScopeId>(scopes.size())) {
    if (scope(id).path == path) return id;
  }
  return {};
}

std::vector<ValueId> operandsOf(const Node& node) {
  std::vector<ValueId> operands;
  forEachOperand(node, [&](ValueId value) { operands.push_back(value); });
  return operands;
}

}  // namespace cleave::graph
