#include "rules/source_splits.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/operators.h"

#include <algorithm>
#include <array>

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
/// [batch, heads, queries, keys]
constexpr int kScoresRank = 4, kHeadsOfScores = 1;

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
  switch (graph::operatorOf(graph.opName(node)).dims) {
    case DimsFrom::Aligned:
    case DimsFrom::First: return aligned >= 0 && sizeAt(to, aligned) == size ? aligned : -1;
    default: return onlyDim(from, size) == dim ? onlyDim(to, size) : -1;
  }
}

/// True when a view has cut `dim` of `value` out of features: [.., h · e] → [.., h, e]. Looks back through operators
/// that keep the shape.
bool isHeadsOfFeatures(const Graph& graph, ValueId value, int dim) {
  const Shape& shape = graph.shapeOf(value);
  if (dim + 2 != static_cast<int>(shape.size())) return false;
  for (std::size_t steps = 0; steps < kLongestWay; ++steps) {
    const Node& node = graph.node(graph.value(value).producer);
    if (node.kind != graph::NodeKind::Call) return false;
    const auto operands = graph::operandsOf(node);
    if (operands.empty()) return false;
    const Shape& before = graph.shapeOf(operands.front());
    if (before.size() + 1 == shape.size() && !before.empty() && before.back() == sizeAt(shape, dim) * shape.back())
      return true;
    const auto next =
        std::find_if(operands.begin(), operands.end(), [&](ValueId v) { return graph.shapeOf(v) == shape; });
    if (next == operands.end()) return false;
    value = *next;
  }
  return false;
}

class Tracer {
 public:
  explicit Tracer(const Graph& graph) : m_graph(graph) {}

  bool areHeads(ValueId source, int dim) {
    m_way.assign(1, {source, dim});
    for (std::size_t at = 0; at < m_way.size(); ++at) {
      const auto [value, here] = m_way[at];
      for (const NodeId user : m_graph.value(value).users) {
        if (meetsHeads(user, value, here)) return true;
      }
    }
    return false;
  }

 private:
  bool meetsHeads(NodeId user, ValueId value, int dim) {
    const Node& node = m_graph.node(user);
    if (node.kind != graph::NodeKind::Call || node.results.empty()) return false;
    const int rank = static_cast<int>(m_graph.shapeOf(value).size());
    if (m_graph.opName(node) == kAttention) {
      return graph::operandAt(node, kMaskOfAttention) == value && rank == kScoresRank && dim == kHeadsOfScores;
    }
    if (graph::layerShape(m_graph, user)) return false;
    const int behind = dimBehind(m_graph, node, value, dim);
    if (behind < 0) return false;
    const ValueId result = node.results.front();
    for (const ValueId other : graph::operandsOf(node)) {
      if (other == value || m_graph.shapeOf(other).size() != m_graph.shapeOf(result).size()) continue;
      if (sizeAt(m_graph.shapeOf(other), behind) != sizeAt(m_graph.shapeOf(value), dim)) continue;
      const bool areScores = m_graph.shapeOf(other).size() == kScoresRank && behind == kHeadsOfScores;
      if (areScores || isHeadsOfFeatures(m_graph, other, behind)) return true;
    }
    if (m_way.size() < kLongestWay) m_way.emplace_back(result, behind);
    return false;
  }

  const Graph& m_graph;
  std::vector<std::pair<ValueId, int>> m_way;
};

}  // namespace

std::vector<SourceSplit> sourceSplits(const Graph& graph, NodeId source, const StrategyContext& context) {
  const Node& node = graph.node(source);
  const bool isSource = node.kind == graph::NodeKind::Parameter || node.kind == graph::NodeKind::Constant;
  if (!isSource || context.candidateSet != CandidateSet::Full || context.worldSize == 1) return {};
  const ValueId value = node.results.front();
  const auto isOutput = [&](const graph::Output& output) { return output.value == value; };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), isOutput)) return {};
  const Shape& shape = graph.shapeOf(value);
  std::vector<SourceSplit> splits;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    const std::int64_t heads = sizeAt(shape, dim);
    if (heads < context.worldSize || heads % context.worldSize != 0 || !Tracer(graph).areHeads(value, dim)) continue;
    splits.push_back({Placement::split(dim), fmt::format("each rank holds what belongs to its {} of {} heads",
                                                         heads / context.worldSize, heads)});
  }
  return splits;
}

}  // namespace cleave::rules
