#include "libtorch/capture/products.h"

#include "graph/arguments.h"
#include "graph/rewrite.h"
#include "libtorch/capture/spelling.h"

namespace cleave::torch_capture {
namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// What a product's second factor is: a parameter [in, out], or one [out, in] that was transposed.
struct Matrix {
  ValueId parameter;
  bool isTransposed = false;
};

class Products {
 public:
  explicit Products(const Graph& graph) : m_graph(graph), m_spelling(graph) {}

  /// The layer that this product is; nullopt: it is none, or is spelled as a layer already.
  struct Layer {
    ValueId input;
    Matrix matrix;
    ValueId bias;
  };
  std::optional<Layer> layerOf(const Node& node) const {
    const std::string& op = m_graph.opName(node);
    if (op == "aten::bmm") return ofBatch(node);
    if (op == "aten::mm") return linear(graph::operandAt(node, 0), graph::operandAt(node, 1), {});
    const auto isOne = [&](std::size_t at) { return graph::numberAt(node, at).value_or(1) == 1; };
    if (op != "aten::addmm" || !isOne(3) || !isOne(4)) return {};
    return linear(graph::operandAt(node, 1), graph::operandAt(node, 2), graph::operandAt(node, 0));
  }

 private:
  std::optional<Matrix> matrixOf(ValueId value) const {
    const Node* turned = m_spelling.call(value, "aten::permute");
    const auto* order = turned ? graph::integersAt(*turned, 1) : nullptr;
    const bool isTransposed = order && *order == std::vector<std::int64_t>{1, 0};
    const ValueId parameter = m_spelling.behindAliases(isTransposed ? graph::operandAt(*turned, 0) : value);
    if (!m_spelling.isParameter(parameter) || m_graph.shapeOf(parameter).size() != 2) return {};
    return Matrix{parameter, isTransposed};
  }

  std::optional<Layer> linear(ValueId input, ValueId factor, ValueId bias) const {
    const auto matrix = matrixOf(factor);
    if (!matrix || !matrix->isTransposed) return {};
    if (bias.isValid() && m_graph.shapeOf(bias) != graph::Shape{m_graph.shapeOf(matrix->parameter)[0]}) return {};
    return Layer{input, *matrix, bias};
  }

  /// The same matrix for every item of the batch: what a product comes down to whose input is not contiguous.
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

/// `x @ W` for all items of a batch at once.
void makeProduct(const Graph& graph, graph::Rewrite& rewrite, NodeId at, const Products::Layer& layer) {
  const graph::TensorType& type = graph.value(graph.node(at).results[0]).type;
  const graph::Shape &from = graph.shapeOf(layer.input), &to = type.shape;
  const graph::Shape rows{from[0] * from[1], from[2]}, columns{to[0] * to[1], to[2]};
  const ValueId flat = rewrite.insert(at, "aten::view", {layer.input, rows}, {type.dtype, rows});
  const ValueId product = rewrite.insert(at, "aten::mm", {flat, layer.matrix.parameter}, {type.dtype, columns});
  rewrite.replace(at, "aten::view", {product, to});
}

}  // namespace

void makeLinear(Graph& graph) {
  graph::Rewrite rewrite(graph);
  const Products products(graph);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = products.layerOf(graph.node(id));
    if (!layer) continue;
    if (!layer->matrix.isTransposed) {
      makeProduct(graph, rewrite, id, *layer);
      continue;
    }
    const Argument bias = layer->bias.isValid() ? Argument(layer->bias) : Argument();
    rewrite.replace(id, "aten::linear", {layer->input, layer->matrix.parameter, bias});
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
