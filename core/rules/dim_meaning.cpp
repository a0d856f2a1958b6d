#include "rules/dim_meaning.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "rules/call.h"
#include "rules/layer_outputs.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace cleave::rules {
namespace {

using graph::DimsFrom;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;

/// Limit on the operators between a source and the operator that gives its dimension a meaning.
constexpr std::size_t kMaxPathLength = 16;
constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";
constexpr std::size_t kMaskOfAttention = 3;

/// Index of dimension `dim` of `from` after a view, on its own or as the inner part of a merged dimension. -1: the view
/// divides it.
int dimAfterView(const Shape& from, const Shape& to, int dim) {
  const std::int64_t before = sizeBefore(from, dim), size = sizeAt(from, dim);
  for (int d = 0; d < static_cast<int>(to.size()); ++d) {
    const std::int64_t outer = sizeBefore(to, d);
    if (sizeAt(to, d) > 1 && outer <= before && outer * sizeAt(to, d) == before * size) return d;
  }
  return -1;
}

/// The only dimension of this size; -1 if there are several or there is no such dimension.
int onlyDim(const Shape& shape, std::int64_t size) {
  if (std::count(shape.begin(), shape.end(), size) != 1) return -1;
  return static_cast<int>(std::find(shape.begin(), shape.end(), size) - shape.begin());
}

/// Index of dimension `dim` of `operand` in the node's first result; -1 if it is unknown.
int dimAfter(const Graph& graph, const Node& node, ValueId operand, int dim) {
  const Shape &from = graph.shapeOf(operand), &to = graph.shapeOf(node.results.front());
  const std::int64_t size = sizeAt(from, dim);
  const int aligned = dim + static_cast<int>(to.size()) - static_cast<int>(from.size());
  const bool isAligned = aligned >= 0 && sizeAt(to, aligned) == size;
  const std::string& op = graph.opName(node);
  if (op == "aten::view") return dimAfterView(from, to, dim);
  // Copies for the batch, merged with the heads: [h] → [b · h]. The heads remain the inner part.
  if (op == "aten::repeat") return aligned >= 0 && size > 1 ? aligned : -1;
  if (op == "aten::permute" && graph::integersAt(node, 1)) return graph::placeAfterPermute(node, dim).value_or(-1);
  switch (graph::operatorOf(op).dims) {
    case DimsFrom::Aligned:
    case DimsFrom::First: return isAligned ? aligned : -1;
    case DimsFrom::Product: return isAligned && aligned + 2 < static_cast<int>(to.size()) ? aligned : -1;
    default: return onlyDim(from, size) == dim ? onlyDim(to, size) : -1;
  }
}

/// A dimension that a view made from the last one, [.., h · e] → [.., h, e] or [.., h, 3, e]: the heads.
bool isCutOfFeatures(const Shape& from, const Shape& to, int dim) {
  return !from.empty() && sizeBefore(to, dim) == sizeBefore(from, static_cast<int>(from.size()) - 1) &&
         sizeAt(to, dim) < from.back();
}

/// Index of dimension `dim` of the node's result in its first operand with such a shape; nullopt if it is new.
std::optional<std::pair<ValueId, int>> dimBefore(const Graph& graph, const Node& node, int dim) {
  const Shape& to = graph.shapeOf(node.results.front());
  const std::string& op = graph.opName(node);
  const auto operands = graph::operandsOf(node);
  if (operands.empty()) return std::nullopt;
  const Shape& from = graph.shapeOf(operands.front());
  const int rank = static_cast<int>(from.size());
  const auto dimOf = [&](int most) {
    return graph::wrapDim(graph::integerAt(node, 1).value_or(0), most).value_or(most);
  };
  if (op == "aten::view") {
    for (int d = 0; d < rank; ++d) {
      // Both end at the same element: the same dimension, or the inner part of a merged one.
      const bool isEnd = sizeBefore(from, d) * sizeAt(from, d) == sizeBefore(to, dim) * sizeAt(to, dim);
      if (isEnd && sizeAt(from, d) > 1 && sizeAt(from, d) <= sizeAt(to, dim)) return std::pair(operands.front(), d);
    }
    return std::nullopt;
  }
  if (const auto* order = op == "aten::permute" ? graph::integersAt(node, 1) : nullptr)
    return std::pair(operands.front(), graph::wrapDim((*order)[static_cast<std::size_t>(dim)], rank).value_or(0));
  if (op == "aten::select.int") return std::pair(operands.front(), dim + (dimOf(rank) <= dim ? 1 : 0));
  if (op == "aten::squeeze.dim" && rank != static_cast<int>(to.size()))
    return std::pair(operands.front(), dim + (dimOf(rank) <= dim ? 1 : 0));
  if (op == "aten::unsqueeze") {
    const int put = dimOf(rank + 1);
    return put == dim ? std::nullopt : std::optional(std::pair(operands.front(), dim - (put < dim ? 1 : 0)));
  }
  const auto same = std::find_if(operands.begin(), operands.end(), [&](ValueId v) {
    const Shape& shape = graph.shapeOf(v);
    return shape.size() == to.size() && sizeAt(shape, dim) == sizeAt(to, dim);
  });
  return same == operands.end() ? std::nullopt : std::optional(std::pair(*same, dim));
}

/// True if a view made `dim` of `value` from features, before other operators moved it.
bool isHeadsOfFeatures(const Graph& graph, ValueId value, int dim) {
  for (std::size_t steps = 0; steps < kMaxPathLength; ++steps) {
    const NodeId id = graph.value(value).producer;
    const Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call || graph::layerShape(graph, id)) return false;
    const auto operands = graph::operandsOf(node);
    if (graph.opName(node) == "aten::view" &&
        isCutOfFeatures(graph.shapeOf(operands.front()), graph.shapeOf(value), dim))
      return true;
    const auto before = dimBefore(graph, node, dim);
    if (!before) return false;
    std::tie(value, dim) = *before;
  }
  return false;
}

/// The linear layers whose output features are the last dimension of `value`, fully or partly. Only element-wise
/// operators on their results and on sources may be in between. Empty if `value` depends on something else.
std::vector<ValueId> layersBefore(const Graph& graph, ValueId value) {
  std::vector<ValueId> way{value}, layers;
  for (std::size_t at = 0; at < way.size(); ++at) {
    const NodeId id = graph.value(way[at]).producer;
    const Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call || way.size() > kMaxPathLength) return {};
    if (const auto layer = graph::layerShape(graph, id)) {
      if (layer->kind != graph::LayerKind::Linear) return {};
      layers.push_back(way[at]);
      continue;
    }
    const std::string& op = graph.opName(node);
    const Shape& shape = graph.shapeOf(way[at]);
    // The same features with other leading sizes, or a part of them.
    const bool isView = op == "aten::view", isPiece = op == "aten::split_with_sizes" || op == "aten::slice.Tensor";
    if (!isView && !isPiece && graph::operatorOf(op).cost != graph::CostClass::Elementwise) return {};
    for (const ValueId operand : graph::operandsOf(node)) {
      const Shape& from = graph.shapeOf(operand);
      const bool isAlong = from == shape || (isView && !from.empty() && from.back() == shape.back()) ||
                           (isPiece && from.size() == shape.size() && from.back() != shape.back());
      const bool isSource = isOfSource(graph, operand);
      if (!isAlong && !isSource && !from.empty()) return {};
      if (isAlong && !isSource && std::find(way.begin(), way.end(), operand) == way.end()) way.push_back(operand);
    }
  }
  return layers;
}

class Tracer {
 public:
  explicit Tracer(const Graph& graph) : m_graph(graph) {}

  DimMeaning of(ValueId source, int dim) {
    DimMeaning meaning;
    m_way.assign(1, {source, dim});
    for (std::size_t at = 0; at < m_way.size(); ++at) {
      const auto [value, here] = m_way[at];
      for (const NodeId user : m_graph.value(value).users) {
        if (meets(user, value, here, meaning)) return meaning;
      }
    }
    return meaning;
  }

 private:
  bool meets(NodeId user, ValueId value, int dim, DimMeaning& meaning) {
    const Node& node = m_graph.node(user);
    if (node.kind != graph::NodeKind::Call || node.results.empty()) return false;
    const int rank = static_cast<int>(m_graph.shapeOf(value).size());
    if (m_graph.opName(node) == kAttention) {
      meaning.isHeads = graph::operandAt(node, kMaskOfAttention) == value && rank == kRankOfHeads && dim == kHeads;
      return meaning.isHeads;
    }
    if (graph::layerShape(m_graph, user)) return false;
    const int after = dimAfter(m_graph, node, value, dim);
    if (after < 0) return false;
    const ValueId result = node.results.front();
    for (const ValueId other : graph::operandsOf(node)) {
      if (other == value || m_graph.shapeOf(other).size() != m_graph.shapeOf(result).size()) continue;
      if (sizeAt(m_graph.shapeOf(other), after) != sizeAt(m_graph.shapeOf(value), dim)) continue;
      const bool areScores = m_graph.shapeOf(other).size() == kRankOfHeads && after == kHeads;
      meaning.isHeads = areScores || isHeadsOfFeatures(m_graph, other, after);
      if (meaning.isHeads) return true;
      if (after + 1 != static_cast<int>(m_graph.shapeOf(other).size())) continue;
      meaning.features = layersBefore(m_graph, other);
      if (!meaning.features.empty()) return true;
    }
    if (m_way.size() < kMaxPathLength) m_way.emplace_back(result, after);
    return false;
  }

  const Graph& m_graph;
  std::vector<std::pair<ValueId, int>> m_way;
};

}  // namespace

DimMeaning meaningOf(const Graph& graph, ValueId value, int dim) { return Tracer(graph).of(value, dim); }

bool meansHeads(const Graph& graph, ValueId value, int dim) { return meaningOf(graph, value, dim).isHeads; }

}  // namespace cleave::rules
