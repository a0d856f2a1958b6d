#include "libtorch/capture/products.h"

#include "graph/arguments.h"
#include "graph/rewrite.h"
#include "graph/weights.h"
#include "libtorch/capture/spelling.h"

namespace cleave::torch_capture {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// The second factor of a product: a weight [in, out], or a transposed weight [out, in].
struct Matrix {
  ValueId weight;
  bool isTransposed = false;
};

class Products {
 public:
  explicit Products(const Graph& graph) : m_graph(graph), m_spelling(graph) {}

  /// The layer that the product computes. nullopt if there is no such layer, or if it is already in layer form.
  struct Layer {
    ValueId input;
    Matrix matrix;
    ValueId bias;
    bool isMirrored = false;  ///< the product is weight × input
  };
  std::optional<Layer> layerOf(const Node& node) const {
    const std::string& op = m_graph.opName(node);
    const ValueId first = graph::operandAt(node, 0), second = graph::operandAt(node, 1);
    if (op == "aten::bmm") {
      auto layer = ofBatch(node);
      return layer ? layer : mirrored(first, second);
    }
    if (op == "aten::mv") return mirrored(first, second);
    if (op == "aten::mm") {
      if (auto layer = linear(first, second, {})) return layer;
      return isLayer(second) ? std::nullopt : mirrored(first, second);
    }
    const auto isOne = [&](std::size_t at) { return graph::numberAt(node, at).value_or(1) == 1; };
    if (op != "aten::addmm" || !isOne(3) || !isOne(4)) return {};
    return linear(graph::operandAt(node, 1), graph::operandAt(node, 2), graph::operandAt(node, 0));
  }

 private:
  /// True if the weight makes a layer as the second factor.
  bool isLayer(ValueId weight) const { return graph::isWeight(m_graph, weight); }

  std::optional<Matrix> matrixOf(ValueId value) const {
    const Node* turned = m_spelling.call(value, "aten::permute");
    const auto* order = turned ? graph::integersAt(*turned, 1) : nullptr;
    const bool isTransposed = order && *order == std::vector<std::int64_t>{1, 0};
    const ValueId weight = m_spelling.withoutAliases(isTransposed ? graph::operandAt(*turned, 0) : value);
    if (!graph::isWeight(m_graph, weight) || m_graph.shapeOf(weight).size() != 2) return {};
    return Matrix{weight, isTransposed};
  }

  /// The weight as first factor, [out, in] × [.., in, n]: a layer on the second factor, transposed.
  std::optional<Layer> mirrored(ValueId factor, ValueId input) const {
    const auto view = m_spelling.viewed(factor);
    if (view.isValid() && m_graph.shapeOf(view) == m_graph.shapeOf(factor)) factor = view;
    const Node* expanded = m_spelling.call(factor, "aten::expand");
    const ValueId weight = m_spelling.withoutAliases(expanded ? graph::operandAt(*expanded, 0) : factor);
    if (!graph::isWeight(m_graph, weight) || m_graph.shapeOf(weight).size() != 2) return {};
    if (!input.isValid() || graph::isComputedFromSources(m_graph, input)) return {};
    return Layer{input, {weight, true}, {}, true};
  }

  std::optional<Layer> linear(ValueId input, ValueId factor, ValueId bias) const {
    const auto matrix = matrixOf(factor);
    if (!matrix || !matrix->isTransposed) return {};
    if (bias.isValid() && m_graph.shapeOf(bias) != graph::Shape{m_graph.shapeOf(matrix->weight)[0]}) return {};
    return Layer{input, *matrix, bias};
  }

  /// The same matrix for every item of the batch: the decomposition of a product with an input that is not contiguous.
  std::optional<Layer> ofBatch(const Node& node) const {
    ValueId factor = graph::operandAt(node, 1);
    const auto view = m_spelling.viewed(factor);
    if (view.isValid() && m_graph.shapeOf(view) == m_graph.shapeOf(factor)) factor = view;
    const Node* expanded = m_spelling.call(factor, "aten::expand");
    const auto matrix = expanded ? matrixOf(graph::operandAt(*expanded, 0)) : std::nullopt;
    if (!matrix) return {};
    return Layer{graph::operandAt(node, 0), *matrix, {}};
  }

  const Graph& m_graph;
  const Spelling m_spelling;
};

/// `x @ W` for all items of a batch together.
void makeProduct(const Graph& graph, graph::Rewrite& rewrite, NodeId at, const Products::Layer& layer) {
  const graph::TensorType& type = graph.value(graph.node(at).results[0]).type;
  const graph::Shape &from = graph.shapeOf(layer.input), &to = type.shape;
  const graph::Shape rows{from[0] * from[1], from[2]}, columns{to[0] * to[1], to[2]};
  const ValueId flat = rewrite.insert(at, "aten::view", {layer.input, rows}, {type.dtype, rows});
  const ValueId product = rewrite.insert(at, "aten::mm", {flat, layer.matrix.weight}, {type.dtype, columns});
  rewrite.replace(at, "aten::view", {product, to});
}

/// (xᵀ · Wᵀ)ᵀ instead of W · x.
void makeMirrored(const Graph& graph, graph::Rewrite& rewrite, NodeId at, const Products::Layer& layer) {
  const graph::TensorType& type = graph.value(graph.node(at).results[0]).type;
  const Argument weight = layer.matrix.weight;
  if (type.shape.size() == 1) {
    rewrite.replace(at, "aten::linear", {layer.input, weight, Argument()});
    return;
  }
  std::vector<std::int64_t> order{0, 1, 2};
  order.resize(type.shape.size());
  std::swap(order.back(), order[order.size() - 2]);
  const auto turned = [](graph::Shape shape) {
    std::swap(shape.back(), shape[shape.size() - 2]);
    return shape;
  };
  const ValueId input = rewrite.insert(at, "aten::permute", {layer.input, order},
                                       {graph.value(layer.input).type.dtype, turned(graph.shapeOf(layer.input))});
  const ValueId product =
      rewrite.insert(at, "aten::linear", {input, weight, Argument()}, {type.dtype, turned(type.shape)});
  rewrite.replace(at, "aten::permute", {product, order});
}

}  // namespace

void makeLinear(Graph& graph) {
  graph::Rewrite rewrite(graph);
  const Products products(graph);
  // All matches are found before the first change, because a graph cannot be read during a rewrite.
  std::vector<std::pair<NodeId, Products::Layer>> found;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    if (const auto layer = products.layerOf(graph.node(id))) found.emplace_back(id, *layer);
  }
  for (const auto& [id, layer] : found) {
    if (layer.isMirrored) {
      makeMirrored(graph, rewrite, id, layer);
    } else if (!layer.matrix.isTransposed) {
      makeProduct(graph, rewrite, id, layer);
    } else {
      const Argument bias = layer.bias.isValid() ? Argument(layer.bias) : Argument();
      rewrite.replace(id, "aten::linear", {layer.input, layer.matrix.weight, bias});
    }
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
