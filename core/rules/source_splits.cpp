#include "rules/source_splits.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "graph/states.h"
#include "rules/call.h"
#include "rules/layer_outputs.h"
#include "rules/weight_splits.h"

#include <algorithm>
#include <tuple>

namespace cleave::rules {
namespace {

using graph::DimsFrom;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;

/// Operators between a source and what tells its dimensions.
constexpr std::size_t kLongestWay = 16;
constexpr std::string_view kAttention = "aten::scaled_dot_product_attention";
constexpr std::size_t kMaskOfAttention = 3;

/// Where a view has dimension `dim` of `from`: as it is, or as the inner part of one that it was merged into. -1: cut.
int dimBehindView(const Shape& from, const Shape& to, int dim) {
  const std::int64_t before = sizeBefore(from, dim), size = sizeAt(from, dim);
  for (int d = 0; d < static_cast<int>(to.size()); ++d) {
    const std::int64_t outer = sizeBefore(to, d);
    if (sizeAt(to, d) > 1 && outer <= before && outer * sizeAt(to, d) == before * size) return d;
  }
  return -1;
}

/// The one dimension of this size; -1: none, or several.
int onlyDim(const Shape& shape, std::int64_t size) {
  if (std::count(shape.begin(), shape.end(), size) != 1) return -1;
  return static_cast<int>(std::find(shape.begin(), shape.end(), size) - shape.begin());
}

/// Where dimension `dim` of `operand` is in the node's first result; -1: nobody knows.
int dimBehind(const Graph& graph, const Node& node, ValueId operand, int dim) {
  const Shape &from = graph.shapeOf(operand), &to = graph.shapeOf(node.results.front());
  const std::int64_t size = sizeAt(from, dim);
  const int aligned = dim + static_cast<int>(to.size()) - static_cast<int>(from.size());
  const bool isAligned = aligned >= 0 && sizeAt(to, aligned) == size;
  const std::string& op = graph.opName(node);
  if (op == "aten::view") return dimBehindView(from, to, dim);
  // Copies for the batch, in one with the heads: [h] → [b · h], of which the heads stay the inner part.
  if (op == "aten::repeat") return aligned >= 0 && size > 1 ? aligned : -1;
  if (op == "aten::permute" && graph::integersAt(node, 1)) return graph::placeAfterPermute(node, dim).value_or(-1);
  switch (graph::operatorOf(op).dims) {
    case DimsFrom::Aligned:
    case DimsFrom::First: return isAligned ? aligned : -1;
    case DimsFrom::Product: return isAligned && aligned + 2 < static_cast<int>(to.size()) ? aligned : -1;
    default: return onlyDim(from, size) == dim ? onlyDim(to, size) : -1;
  }
}

/// A dimension that a view has cut out of the last one before it, [.., h · e] → [.., h, e] or [.., h, 3, e]: its heads.
bool isCutOfFeatures(const Shape& from, const Shape& to, int dim) {
  return !from.empty() && sizeBefore(to, dim) == sizeBefore(from, static_cast<int>(from.size()) - 1) &&
         sizeAt(to, dim) < from.back();
}

/// Where dimension `dim` of the node's result was in its first operand of such a shape; nullopt: it was not there.
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
      // Ends at the same element: the same dimension, or the inner part of a merged one.
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

/// True when a view has cut `dim` of `value` out of features, before other operators moved it.
bool isHeadsOfFeatures(const Graph& graph, ValueId value, int dim) {
  for (std::size_t steps = 0; steps < kLongestWay; ++steps) {
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

/// The linear layers whose output features the last dimension of `value` is, whole or a part of them: what elementwise
/// operators make of their results and of sources alone. Empty: something else is in it.
std::vector<ValueId> layersBefore(const Graph& graph, ValueId value) {
  std::vector<ValueId> way{value}, layers;
  for (std::size_t at = 0; at < way.size(); ++at) {
    const NodeId id = graph.value(way[at]).producer;
    const Node& node = graph.node(id);
    if (node.kind != graph::NodeKind::Call || way.size() > kLongestWay) return {};
    if (const auto layer = graph::layerShape(graph, id)) {
      if (layer->kind != graph::LayerKind::Linear) return {};
      layers.push_back(way[at]);
      continue;
    }
    const std::string& op = graph.opName(node);
    const Shape& shape = graph.shapeOf(way[at]);
    // The same features under other leading sizes; a part of them.
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

/// What tells the dimension of a source.
struct Meaning {
  bool isHeads = false;
  std::vector<ValueId> features;  ///< of these layers' results
};

class Tracer {
 public:
  explicit Tracer(const Graph& graph) : m_graph(graph) {}

  Meaning of(ValueId source, int dim) {
    Meaning meaning;
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
  bool meets(NodeId user, ValueId value, int dim, Meaning& meaning) {
    const Node& node = m_graph.node(user);
    if (node.kind != graph::NodeKind::Call || node.results.empty()) return false;
    const int rank = static_cast<int>(m_graph.shapeOf(value).size());
    if (m_graph.opName(node) == kAttention) {
      meaning.isHeads = graph::operandAt(node, kMaskOfAttention) == value && rank == kRankOfHeads && dim == kHeads;
      return meaning.isHeads;
    }
    if (graph::layerShape(m_graph, user)) return false;
    const int behind = dimBehind(m_graph, node, value, dim);
    if (behind < 0) return false;
    const ValueId result = node.results.front();
    for (const ValueId other : graph::operandsOf(node)) {
      if (other == value || m_graph.shapeOf(other).size() != m_graph.shapeOf(result).size()) continue;
      if (sizeAt(m_graph.shapeOf(other), behind) != sizeAt(m_graph.shapeOf(value), dim)) continue;
      const bool areScores = m_graph.shapeOf(other).size() == kRankOfHeads && behind == kHeads;
      meaning.isHeads = areScores || isHeadsOfFeatures(m_graph, other, behind);
      if (meaning.isHeads) return true;
      if (behind + 1 != static_cast<int>(m_graph.shapeOf(other).size())) continue;
      meaning.features = layersBefore(m_graph, other);
      if (!meaning.features.empty()) return true;
    }
    if (m_way.size() < kLongestWay) m_way.emplace_back(result, behind);
    return false;
  }

  const Graph& m_graph;
  std::vector<std::pair<ValueId, int>> m_way;
};

/// Of a cache: by its heads, into as many parts as heads and ranks both divide into, each held by several ranks where
/// there are more ranks than parts: as the layers' keys and values are.
std::vector<SourceSplit> cacheSplits(const Shape& shape, int ranks) {
  const std::int64_t heads = sizeAt(shape, graph::kCacheHeads);
  if (heads == 0) return {};
  const int copies = replicasFor(heads, ranks);
  const std::int64_t own = heads * copies / ranks;
  const Placement even = Placement::split(graph::kCacheHeads);
  if (copies == 1) return {{even, fmt::format("each rank keeps the keys or values of its {} of {} heads", own, heads)}};
  return {{even.withReplicas(copies), fmt::format("{} ranks each keep the keys or values of {} of {} heads", copies,
                                                  own == 1 ? "one" : std::to_string(own), heads)}};
}

}  // namespace

bool meansHeads(const Graph& graph, ValueId value, int dim) { return Tracer(graph).of(value, dim).isHeads; }

std::vector<SourceSplit> sourceSplits(const Graph& graph, NodeId source, const StrategyContext& context) {
  const Node& node = graph.node(source);
  if (node.kind == graph::NodeKind::Input && context.worldSize > 1 &&
      graph::isPast(graph.value(node.results.front()).name))
    return cacheSplits(graph.shapeOf(node.results.front()), context.worldSize);
  const bool isSource = node.kind == graph::NodeKind::Parameter || node.kind == graph::NodeKind::Constant;
  if (!isSource || context.worldSize == 1) return {};
  const ValueId value = node.results.front();
  const auto isOutput = [&](const graph::Output& output) { return output.value == value; };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), isOutput)) return {};
  const Shape& shape = graph.shapeOf(value);
  std::vector<SourceSplit> splits;
  if (node.kind == graph::NodeKind::Parameter) {
    for (Placement& placement : weightSplits(graph, value, context))
      splits.push_back(
          {std::move(placement), "each rank holds its part of a layer's weight, which is computed from it"});
  }
  if (context.candidateSet != CandidateSet::Full) return splits;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    const std::int64_t size = sizeAt(shape, dim);
    if (size < context.worldSize) continue;
    const Meaning meaning = Tracer(graph).of(value, dim);
    const auto add = [&](Placement placement, std::string_view what) {
      if (!placement.localShape(shape, context.worldSize)) return;
      const auto isKnown = [&](const SourceSplit& split) { return split.placement == placement; };
      if (std::any_of(splits.begin(), splits.end(), isKnown)) return;
      const std::int64_t own = sizeAt(*placement.localShape(shape, context.worldSize), dim);
      splits.push_back(
          {std::move(placement), fmt::format("each rank holds what belongs to its {} of {} {}", own, size, what)});
    };
    if (meaning.isHeads) add(Placement::split(dim), "heads");
    for (const ValueId layer : meaning.features) {
      const int last = static_cast<int>(graph.shapeOf(layer).size()) - 1;
      const bool isWhole = sizeAt(graph.shapeOf(layer), last) == size;
      const auto lane = isWhole ? columnsBehind(graph, layer, context.worldSize) : std::nullopt;
      if (lane && !lane->isReplicatedOn(context.worldSize)) add(lane->shifted(dim - last), "features");
      add(Placement::split(dim), "features");
    }
  }
  return splits;
}

}  // namespace cleave::rules
