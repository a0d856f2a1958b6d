#include "libtorch/capture/joins.h"

#include "graph/rewrite.h"
#include "libtorch/capture/spelling.h"

#include <algorithm>
#include <map>

namespace cleave::torch_capture {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kWrite = "aten::slice_scatter";

struct Join {
  std::int64_t dim = 0;
  std::map<std::int64_t, ValueId> pieces;  ///< by start
};

class Joins {
 public:
  explicit Joins(const Graph& graph) : m_graph(graph), m_spelling(graph) {}

  /// The concatenation that the last of a chain of writes produces; nullopt if an original element is left.
  std::optional<Join> of(const Node& last) const {
    const graph::Shape& shape = m_graph.shapeOf(last.results[0]);
    const auto dim = dimOf(last);
    if (!dim) return std::nullopt;
    Join join{*dim, {}};
    std::int64_t left = shape[static_cast<std::size_t>(*dim)];
    for (const Node* write = &last; write && left > 0;) {
      const auto begin = beginOf(*write, *dim);
      const ValueId piece = writtenBy(*write);
      if (!begin || !piece.isValid() || !join.pieces.emplace(*begin, piece).second) return std::nullopt;
      left -= m_graph.shapeOf(piece)[static_cast<std::size_t>(*dim)];
      write = m_spelling.call(graph::operandAt(*write, 0), kWrite);
    }
    std::int64_t end = 0;
    for (const auto& [begin, piece] : join.pieces) {
      if (begin != end) return std::nullopt;
      end += m_graph.shapeOf(piece)[static_cast<std::size_t>(*dim)];
    }
    return left == 0 && join.pieces.size() > 1 ? std::optional(join) : std::nullopt;
  }

 private:
  std::optional<std::int64_t> dimOf(const Node& write) const {
    const auto rank = static_cast<int>(m_graph.shapeOf(write.results[0]).size());
    const auto dim = graph::wrapDim(graph::integerAt(write, 2).value_or(0), rank);
    return dim && rank > 0 ? std::optional<std::int64_t>(*dim) : std::nullopt;
  }

  /// The start of a write along this dimension, element by element.
  std::optional<std::int64_t> beginOf(const Node& write, std::int64_t dim) const {
    if (dimOf(write) != dim || graph::integerAt(write, 5).value_or(1) != 1) return std::nullopt;
    const std::int64_t begin = graph::integerAt(write, 3).value_or(0);
    return begin < 0 ? begin + m_graph.shapeOf(write.results[0])[static_cast<std::size_t>(dim)] : begin;
  }

  /// The written piece, cast to the type of the result.
  ValueId writtenBy(const Node& write) const {
    ValueId piece = graph::operandAt(write, 1);
    if (const Node* copy = m_spelling.call(piece, "aten::copy")) {
      const ValueId from = graph::operandAt(*copy, 1);
      if (from.isValid() && m_graph.value(from).type == m_graph.value(piece).type) piece = from;
    }
    const bool isSame = m_graph.value(piece).type.dtype == m_graph.value(write.results[0]).type.dtype;
    return isSame ? m_spelling.withoutAliases(piece) : ValueId();
  }

  const Graph& m_graph;
  const Spelling m_spelling;
};

}  // namespace

void makeJoins(Graph& graph) {
  if (std::find(graph.ops.begin(), graph.ops.end(), kWrite) == graph.ops.end()) return;
  graph::Rewrite rewrite(graph);
  const Joins joins(graph);
  std::vector<std::pair<NodeId, Join>> found;
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    if (graph.opName(graph.node(id)) != kWrite) continue;
    if (auto join = joins.of(graph.node(id))) found.emplace_back(id, *std::move(join));
  }
  for (const auto& [id, join] : found) {
    graph::ValueList pieces;
    for (const auto& [begin, piece] : join.pieces) pieces.push_back(piece);
    rewrite.replace(id, "aten::cat", {std::move(pieces), join.dim});
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
