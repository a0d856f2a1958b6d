#include "graph/operators.h"

#include <algorithm>
#include <array>

namespace cleave::graph {
namespace {

ValueId valueArgument(const Node& node, std::size_t position) {
  if (position >= node.args.size()) return {};
  const auto* value = std::get_if<ValueId>(&node.args[position]);
  return value ? *value : ValueId();
}

bool isParameter(const Graph& graph, ValueId value) {
  return value.isValid() && graph.node(graph.value(value).producer).kind == NodeKind::Parameter;
}

/// Where a product with a parameter keeps its operands; -1: no bias.
struct ProductRow {
  std::string_view op;
  int input, weight, bias;
  bool weightIsTransposed;  ///< weight is [out, in] (linear) instead of [in, out]
};
constexpr std::array kProducts{
    ProductRow{"aten::linear", 0, 1, 2, true},
    ProductRow{"aten::mm", 0, 1, -1, false},
    ProductRow{"aten::matmul", 0, 1, -1, false},
    ProductRow{"aten::addmm", 1, 2, 0, false},
};

std::optional<LayerShape> productLayer(const Graph& graph, const Node& node, const ProductRow& row) {
  LayerShape layer;
  layer.input = valueArgument(node, static_cast<std::size_t>(row.input));
  layer.weight = valueArgument(node, static_cast<std::size_t>(row.weight));
  if (row.bias >= 0) layer.bias = valueArgument(node, static_cast<std::size_t>(row.bias));
  if (!layer.input.isValid() || !isParameter(graph, layer.weight) || isParameter(graph, layer.input))
    return std::nullopt;
  if (graph.shapeOf(layer.weight).size() != 2 || graph.shapeOf(layer.input).empty()) return std::nullopt;
  if (layer.bias.isValid() && (!isParameter(graph, layer.bias) || graph.shapeOf(layer.bias).size() != 1))
    return std::nullopt;
  // addmm scales bias and product by beta and alpha; only the plain form is a layer.
  if (row.op == "aten::addmm") {
    for (std::size_t position : {std::size_t{3}, std::size_t{4}}) {
      if (position >= node.args.size()) continue;
      const auto* integer = std::get_if<std::int64_t>(&node.args[position]);
      const auto* real = std::get_if<double>(&node.args[position]);
      if ((integer && *integer != 1) || (real && *real != 1.0)) return std::nullopt;
    }
  }
  layer.outAxis = row.weightIsTransposed ? 0 : 1;
  layer.inAxis = 1 - layer.outAxis;
  return layer;
}

/// hidden, topk_ids, topk_weights, gate_up, down, activation.
std::optional<LayerShape> expertsLayer(const Graph& graph, const Node& node) {
  LayerShape layer;
  layer.kind = LayerKind::Experts;
  layer.input = valueArgument(node, 0);
  layer.target = valueArgument(node, 1);
  layer.shares = valueArgument(node, 2);
  layer.weight = valueArgument(node, 3);
  layer.down = valueArgument(node, 4);
  if (!layer.input.isValid() || !layer.target.isValid() || !layer.shares.isValid()) return std::nullopt;
  if (!isParameter(graph, layer.weight) || !isParameter(graph, layer.down) || layer.weight == layer.down)
    return std::nullopt;
  const Shape& hidden = graph.shapeOf(layer.input);
  const Shape& gateUp = graph.shapeOf(layer.weight);
  const Shape& down = graph.shapeOf(layer.down);
  const bool fits = hidden.size() == 2 && gateUp.size() == 3 && down.size() == 3 && gateUp[0] == down[0] &&
                    gateUp[1] == 2 * down[2] && gateUp[2] == hidden[1] && down[1] == hidden[1];
  return fits ? std::optional(layer) : std::nullopt;
}

}  // namespace

bool mayBeLayer(std::string_view op) {
  const bool isProduct =
      std::any_of(kProducts.begin(), kProducts.end(), [&](const ProductRow& row) { return row.op == op; });
  return isProduct || op == "aten::embedding" || op == "aten::cross_entropy_loss" || op == kMoeExperts;
}

std::optional<LayerShape> layerShape(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::Call) return std::nullopt;
  const std::string& op = graph.opName(node);
  for (const ProductRow& row : kProducts) {
    if (op == row.op) return productLayer(graph, node, row);
  }
  if (op == "aten::embedding") {
    LayerShape layer;
    layer.kind = LayerKind::Embedding;
    layer.weight = valueArgument(node, 0);
    layer.input = valueArgument(node, 1);
    if (!isParameter(graph, layer.weight) || !layer.input.isValid() || graph.shapeOf(layer.weight).size() != 2)
      return std::nullopt;
    return layer;
  }
  if (op == "aten::cross_entropy_loss") {
    LayerShape layer;
    layer.kind = LayerKind::CrossEntropy;
    layer.input = valueArgument(node, 0);
    layer.target = valueArgument(node, 1);
    layer.weight = valueArgument(node, 2);
    if (!layer.input.isValid() || !layer.target.isValid()) return std::nullopt;
    return layer;
  }
  if (op == kMoeExperts) return expertsLayer(graph, node);
  return std::nullopt;
}

std::string layerName(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.scope.index() != 0) return graph.scope(node.scope).path;
  if (const auto layer = layerShape(graph, id); layer && layer->weight.isValid()) {
    const std::string& weight = graph.value(layer->weight).name;
    const auto dot = weight.rfind('.');
    return dot == std::string::npos ? weight : weight.substr(0, dot);
  }
  return node.results.empty() ? std::string() : graph.value(node.results[0]).name;
}

bool isAliasing(std::string_view op) {
  static constexpr std::array kViews{
      "aten::view",
      "aten::alias",
      "aten::permute",
      "aten::transpose.int",
      "aten::t",
      "aten::slice.Tensor",
      "aten::select.int",
      "aten::expand",
      "aten::unsqueeze",
      "aten::squeeze",
      "aten::squeeze.dim",
      "aten::squeeze.dims",
      "aten::split.Tensor",
      "aten::split_with_sizes",
      "aten::chunk",
      "aten::unbind.int",
      "aten::detach",
      "aten::diagonal",
      "aten::as_strided",
      "aten::unfold",
      "aten::narrow",
      "aten::view.dtype",
      "cleave::grad_all_reduce",
  };
  return std::find(kViews.begin(), kViews.end(), op) != kViews.end();
}

}  // namespace cleave::graph
