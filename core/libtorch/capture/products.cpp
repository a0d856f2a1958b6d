#include "libtorch/capture/products.h"

#include "graph/arguments.h"
#include "graph/rewrite.h"

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

}  // namespace

void makeLinear(Graph& graph) {
  graph::Rewrite rewrite(graph);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    if (auto args = linearArguments(graph, graph.node(id)); !args.empty())
      rewrite.replace(id, "aten::linear", std::move(args));
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
