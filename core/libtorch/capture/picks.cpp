#include "libtorch/capture/picks.h"

#include "graph/rewrite.h"
#include "libtorch/capture/spelling.h"

#include <algorithm>
#include <cstring>

namespace cleave::torch_capture {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

struct Pick {
  ValueId from, indices;
  std::size_t dim = 0;
};

/// Matches a selection along one dimension; nullopt otherwise.
std::optional<Pick> pickOf(const Graph& graph, const Node& node) {
  if (graph.opName(node) == "aten::index_select") {
    const ValueId from = graph::operandAt(node, 0);
    const auto dim =
        graph::wrapDim(graph::integerAt(node, 1).value_or(0), static_cast<int>(graph.shapeOf(from).size()));
    if (!dim) return std::nullopt;
    return Pick{from, graph::operandAt(node, 2), static_cast<std::size_t>(*dim)};
  }
  const bool isIndex = graph.opName(node) == "aten::index.Tensor" && node.args.size() > 1;
  const auto* lists = isIndex ? std::get_if<graph::ValueList>(&node.args[1]) : nullptr;
  if (!lists || std::ranges::count_if(*lists, [](ValueId id) { return id.isValid(); }) != 1) return std::nullopt;
  const auto at = std::ranges::find_if(*lists, [](ValueId id) { return id.isValid(); });
  return Pick{graph::operandAt(node, 0), *at, static_cast<std::size_t>(at - lists->begin())};
}

/// The first of consecutive indices; nullopt if they are unknown or not consecutive.
std::optional<std::int64_t> firstOf(const Graph& graph, const Spelling& spelling, ValueId indices, std::int64_t size) {
  while (const Node* copy = spelling.call(indices, "aten::clone")) indices = graph::operandAt(*copy, 0);
  indices = spelling.withoutAliases(indices);
  const NodeId source = graph.value(indices).producer;
  const graph::TensorType& type = graph.value(indices).type;
  const auto bytes = graph.constants.find(source.raw());
  const bool isList = type.dtype == graph::DType::Int64 && type.shape.size() == 1 && type.shape[0] > 0;
  if (graph.node(source).kind != graph::NodeKind::Constant || bytes == graph.constants.end() || !isList)
    return std::nullopt;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(type.shape[0]));
  if (bytes->second.size() != numbers.size() * sizeof(std::int64_t)) return std::nullopt;
  std::memcpy(numbers.data(), bytes->second.data(), bytes->second.size());
  for (std::int64_t& number : numbers) number += number < 0 ? size : 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != numbers[0] + static_cast<std::int64_t>(i)) return std::nullopt;
  }
  return numbers.front() >= 0 && numbers.back() < size ? std::optional(numbers.front()) : std::nullopt;
}

}  // namespace

void makeSlices(Graph& graph) {
  graph::Rewrite rewrite(graph);
  const Spelling spelling(graph);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const auto pick = graph.node(id).kind == graph::NodeKind::Call ? pickOf(graph, graph.node(id)) : std::nullopt;
    if (!pick || !pick->from.isValid() || !pick->indices.isValid()) continue;
    const graph::Shape& shape = graph.shapeOf(pick->from);
    if (pick->dim >= shape.size()) continue;
    const auto first = firstOf(graph, spelling, pick->indices, shape[pick->dim]);
    if (!first) continue;
    const std::int64_t end = *first + graph.shapeOf(pick->indices)[0];
    rewrite.replace(id, "aten::slice.Tensor",
                    {pick->from, static_cast<std::int64_t>(pick->dim), *first, end, std::int64_t{1}});
  }
  std::move(rewrite).apply();
}

}  // namespace cleave::torch_capture
