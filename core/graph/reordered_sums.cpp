#include "graph/reordered_sums.h"

#include "graph/layers.h"
#include "graph/rewrite.h"

#include <algorithm>

namespace cleave::graph {
namespace {

class Reordering {
 public:
  Reordering(Graph& graph, int parts) : m_graph(graph), m_rewrite(graph), m_parts(parts) {}

  void product(NodeId at, const LayerShape& layer) {
    m_at = at;
    const ValueId result = m_graph.node(at).results.front();
    const TensorType type = m_graph.value(result).type;
    const std::string name = m_graph.value(result).name;
    const std::int64_t summed = m_graph.shapeOf(layer.weight)[static_cast<std::size_t>(layer.inAxis)];
    const std::int64_t parts = std::min<std::int64_t>(m_parts, summed);
    if (parts < 2) return;
    const int inputDim = static_cast<int>(m_graph.shapeOf(layer.input).size()) - 1;
    const std::string op = withoutBias(layer);
    ValueId sum;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t from = summed * part / parts, to = summed * (part + 1) / parts;
      const ValueId input = slice(layer.input, inputDim, from, to);
      const ValueId weight = slice(layer.weight, layer.inAxis, from, to);
      std::vector<Argument> args{input, weight};
      if (op == "aten::linear") args.emplace_back();
      const bool isLast = part + 1 == parts && !layer.bias.isValid();
      const ValueId product = m_rewrite.insert(at, op, std::move(args), type);
      if (isLast) {
        m_rewrite.complete(at, "aten::add.Tensor", {sum, product});
      } else {
        sum = sum.isValid() ? m_rewrite.insert(at, "aten::add.Tensor", {sum, product}, type) : product;
      }
    }
    if (layer.bias.isValid()) m_rewrite.complete(at, "aten::add.Tensor", {sum, layer.bias});
  }

  void apply() && { std::move(m_rewrite).apply(); }

 private:
  std::string withoutBias(const LayerShape& layer) const {
    const std::string& op = m_graph.opName(m_graph.node(m_at));
    return layer.bias.isValid() && op != "aten::linear" ? "aten::mm" : op;
  }

  ValueId slice(ValueId value, int dim, std::int64_t from, std::int64_t to) {
    TensorType type = m_graph.value(value).type;
    type.shape[static_cast<std::size_t>(dim)] = to - from;
    return m_rewrite.insert(m_at, "aten::slice.Tensor", {value, std::int64_t{dim}, from, to, std::int64_t{1}},
                            std::move(type));
  }

  Graph& m_graph;
  Rewrite m_rewrite;
  const int m_parts;
  NodeId m_at;
};

}  // namespace

Graph withReorderedSums(const Graph& graph, int parts) {
  Graph changed = graph;
  Reordering reordering(changed, std::max(2, parts));
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = layerShape(graph, id);
    if (layer && layer->kind == LayerKind::Linear) reordering.product(id, *layer);
  }
  std::move(reordering).apply();
  return changed;
}

}  // namespace cleave::graph
