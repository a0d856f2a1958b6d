#include "libtorch/capture/products.h"

#include "graph/arguments.h"

#include <algorithm>

namespace cleave::torch_capture {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// The parameter that this value is the transpose of; invalid: of none.
ValueId transposedParameter(const Graph& graph, ValueId value) {
  if (!value.isValid()) return {};
  const Node& made = graph.node(graph.value(value).producer);
  const auto* order = graph.opName(made) == "aten::permute" ? graph::integersAt(made, 1) : nullptr;
  if (!order || *order != std::vector<std::int64_t>{1, 0}) return {};
  const ValueId weight = graph::operandAt(made, 0);
  return graph.node(graph.value(weight).producer).kind == graph::NodeKind::Parameter ? weight : ValueId();
}

bool isOne(const Node& node, std::size_t position) { return graph::numberAt(node, position).value_or(1) == 1; }

/// Arguments of the linear layer that this product is; empty: it is none.
std::vector<Argument> linearArguments(const Graph& graph, const Node& node) {
  const bool isPlain = graph.opName(node) == "aten::mm";
  if (!isPlain && (graph.opName(node) != "aten::addmm" || !isOne(node, 3) || !isOne(node, 4))) return {};
  const std::size_t first = isPlain ? 0 : 1;
  const ValueId weight = transposedParameter(graph, graph::operandAt(node, first + 1));
  if (!weight.isValid()) return {};
  const ValueId bias = isPlain ? ValueId() : graph::operandAt(node, 0);
  if (bias.isValid() && graph.shapeOf(bias) != graph::Shape{graph.shapeOf(weight)[0]}) return {};
  return {graph::operandAt(node, first), weight, bias.isValid() ? Argument(bias) : Argument()};
}

graph::OpId opNamed(Graph& graph, std::string_view name) {
  auto at = std::find(graph.ops.begin(), graph.ops.end(), name);
  if (at == graph.ops.end()) at = graph.ops.insert(graph.ops.end(), std::string(name));
  return graph::OpId(static_cast<std::uint32_t>(at - graph.ops.begin()));
}

/// New numbers of what is kept, by old number.
template <class Id>
class Numbers {
 public:
  explicit Numbers(std::size_t count) : m_new(count) {}
  void keep(Id old) { m_new[old.index()] = Id(m_count++); }
  Id operator()(Id old) const { return old.isValid() ? m_new[old.index()] : old; }

 private:
  std::vector<Id> m_new;
  std::uint32_t m_count = 0;
};

void renumberArguments(Node& node, const Numbers<ValueId>& values) {
  for (Argument& argument : node.args) {
    if (auto* value = std::get_if<ValueId>(&argument)) *value = values(*value);
    if (auto* list = std::get_if<graph::ValueList>(&argument)) std::ranges::transform(*list, list->begin(), values);
  }
}

/// Takes out calls that nothing reads.
void erase(Graph& graph, const std::vector<bool>& isGone) {
  Numbers<NodeId> nodes(graph.nodes.size());
  Numbers<ValueId> values(graph.values.size());
  std::vector<Node> keptNodes;
  std::vector<graph::Value> keptValues;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    if (isGone[id.index()]) continue;
    nodes.keep(id);
    keptNodes.push_back(std::move(graph.nodes[id.index()]));
  }
  for (const ValueId id : idRange<ValueId>(graph.values.size())) {
    if (isGone[graph.value(id).producer.index()]) continue;
    values.keep(id);
    keptValues.push_back(std::move(graph.values[id.index()]));
  }
  std::unordered_map<std::uint32_t, std::vector<std::byte>> constants;
  for (auto& [raw, bytes] : graph.constants) constants.emplace(nodes(NodeId(raw)).raw(), std::move(bytes));
  for (Node& node : keptNodes) {
    renumberArguments(node, values);
    std::ranges::transform(node.results, node.results.begin(), values);
  }
  for (graph::Value& value : keptValues) {
    std::erase_if(value.users, [&](NodeId user) { return isGone[user.index()]; });
    std::ranges::transform(value.users, value.users.begin(), nodes);
    value.producer = nodes(value.producer);
  }
  for (graph::Output& output : graph.outputs) output.value = values(output.value);
  graph.nodes = std::move(keptNodes);
  graph.values = std::move(keptValues);
  graph.constants = std::move(constants);
}

void addUser(graph::Value& value, NodeId user) {
  const auto at = std::lower_bound(value.users.begin(), value.users.end(), user);
  if (at == value.users.end() || *at != user) value.users.insert(at, user);
}

}  // namespace

void makeLinear(Graph& graph) {
  std::vector<bool> isGone(graph.nodes.size(), false), isOutput(graph.values.size(), false);
  for (const graph::Output& output : graph.outputs) isOutput[output.value.index()] = true;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    Node& node = graph.nodes[id.index()];
    std::vector<Argument> args = linearArguments(graph, node);
    if (args.empty()) continue;
    const ValueId transposed = graph::operandAt(node, graph.opName(node) == "aten::mm" ? 1 : 2);
    std::erase(graph.values[transposed.index()].users, id);
    addUser(graph.values[std::get<ValueId>(args[1]).index()], id);
    const bool isUnread = graph.value(transposed).users.empty() && !isOutput[transposed.index()];
    if (isUnread) isGone[graph.value(transposed).producer.index()] = true;
    node.op = opNamed(graph, "aten::linear");
    node.args = std::move(args);
  }
  if (std::find(isGone.begin(), isGone.end(), true) != isGone.end()) erase(graph, isGone);
}

}  // namespace cleave::torch_capture
