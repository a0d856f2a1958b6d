#include "libtorch/rank/execute/index_range.h"

#include "base/quantities.h"
#include "graph/arguments.h"
#include "graph/operators.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <set>

namespace cleave::torch_rank {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::int64_t kIgnoreIndex = -100;  // default of ATen's losses

bool isAt(const Node& node, std::size_t position, ValueId value) { return graph::operandAt(node, position) == value; }

/// Size of a dimension of the operand at `position`, or nullopt if it does not exist.
std::optional<std::int64_t> sizeOf(const Graph& graph, const Node& node, std::size_t position, std::int64_t dim) {
  const ValueId operand = graph::operandAt(node, position);
  if (!operand.isValid() || graph.shapeOf(operand).empty()) return std::nullopt;
  const graph::Shape& shape = graph.shapeOf(operand);
  const auto at = graph::wrapDim(dim, static_cast<int>(shape.size()));
  return at ? std::optional(shape[static_cast<std::size_t>(*at)]) : std::nullopt;
}

std::optional<IndexRange> lossRange(const Graph& graph, const Node& node, std::optional<std::int64_t> classes) {
  const std::int64_t ignored = graph::integerAt(node, 4).value_or(kIgnoreIndex);
  if (!classes) classes = sizeOf(graph, node, 0, 1);
  if (!classes) classes = sizeOf(graph, node, 0, 0);
  if (!classes) return std::nullopt;
  return IndexRange{0, *classes, ignored,
                    fmt::format("the {} of the loss (0 to {}; {} is ignored)", counted(*classes, "class", "classes"),
                                *classes - 1, ignored)};
}

IndexRange rowsOf(std::int64_t rows, std::string_view one, std::string_view ofWhat) {
  return {0, rows, std::nullopt, fmt::format("the {} {} (0 to {})", counted(rows, one), ofWhat, rows - 1)};
}

/// The range that `node` requires of the values of its operand.
std::optional<IndexRange> rangeRequiredBy(const Graph& graph, const Node& node, ValueId value) {
  const std::string& op = graph.opName(node);
  if (op == "aten::embedding" && isAt(node, 1, value)) {
    if (const auto rows = sizeOf(graph, node, 0, 0)) return rowsOf(*rows, "row", "of the table");
  } else if (op == graph::kVocabEmbedding && isAt(node, 1, value)) {
    return rowsOf(graph::integerAt(node, 2).value_or(0), "row", "of the table");
  } else if ((op == "aten::cross_entropy_loss" || op == "aten::nll_loss" || op == "aten::nll_loss_forward") &&
             isAt(node, 1, value)) {
    return lossRange(graph, node, std::nullopt);
  } else if (op == graph::kVocabCrossEntropy && isAt(node, 1, value)) {
    return lossRange(graph, node, graph::integerAt(node, 6).value_or(0));
  } else if ((op == "aten::index_select" || op == "aten::gather") && isAt(node, 2, value)) {
    if (const auto size = sizeOf(graph, node, 0, graph::integerAt(node, 1).value_or(0)))
      return rowsOf(*size, "element", "it selects from");
  } else if (op == "aten::index.Tensor" && node.args.size() > 1) {
    const auto* indices = std::get_if<graph::ValueList>(&node.args[1]);
    for (std::size_t dim = 0; indices && dim < indices->size(); ++dim) {
      const auto size = sizeOf(graph, node, 0, static_cast<std::int64_t>(dim));
      if ((*indices)[dim] == value && size)
        return IndexRange{-*size, *size, std::nullopt,
                          fmt::format("the {} it selects from", counted(*size, "element"))};
    }
  }
  return std::nullopt;
}

/// The number that `node` adds to a value, or nullopt if it does something else.
std::optional<std::int64_t> addedBy(const Graph& graph, const Node& node, ValueId value) {
  const std::string& op = graph.opName(node);
  if ((op != "aten::add.Tensor" && op != "aten::add.Scalar") || !isAt(node, 0, value) ||
      graph::integerAt(node, 2).value_or(1) != 1)
    return std::nullopt;
  return graph::integerAt(node, 1);
}

class Follower {
 public:
  explicit Follower(const Graph& graph) : m_graph(graph) {}
  /// `added`: the difference between the value and the input.
  void follow(ValueId value, std::int64_t added) {
    if (!m_seen.insert({value.raw(), added}).second) return;
    for (const NodeId user : m_graph.value(value).users) {
      const Node& node = m_graph.node(user);
      if (node.kind != graph::NodeKind::Call) continue;
      if (auto range = rangeRequiredBy(m_graph, node, value)) {
        range->low -= added;
        range->high -= added;
        ranges.push_back(*std::move(range));
      }
      const auto more = addedBy(m_graph, node, value);
      if (!more && !(graph::operatorOf(m_graph.opName(node)).keepsIndices && isAt(node, 0, value))) continue;
      for (const ValueId result : node.results) follow(result, added + more.value_or(0));
    }
  }
  std::vector<IndexRange> ranges;

 private:
  const Graph& m_graph;
  std::set<std::pair<std::uint32_t, std::int64_t>> m_seen;
};

std::string placeOf(const at::Tensor& values, const at::Tensor& isBad) {
  std::vector<std::int64_t> place;
  const at::Tensor first = isBad.nonzero()[0];
  for (std::int64_t dim = 0; dim < values.dim(); ++dim) place.push_back(first[dim].item<std::int64_t>());
  return fmt::format("[{}]", fmt::join(place, ", "));
}

}  // namespace

std::vector<IndexRange> indexRangesOf(const Graph& graph, ValueId input) {
  Follower follower(graph);
  follower.follow(input, 0);
  return std::move(follower.ranges);
}

Result<void> checkIndices(const std::string& name, const at::Tensor& values, const std::vector<IndexRange>& ranges) {
  for (const IndexRange& range : ranges) {
    at::Tensor isBad = (values < range.low) | (values >= range.high);
    if (range.ignored) isBad = isBad & (values != *range.ignored);
    if (!isBad.any().item<bool>()) continue;
    return fail(ErrorCode::BadInput, "{} is {} at {}, not one of {}.", name,
                values.masked_select(isBad)[0].item<std::int64_t>(), placeOf(values, isBad), range.of);
  }
  return {};
}

}  // namespace cleave::torch_rank
