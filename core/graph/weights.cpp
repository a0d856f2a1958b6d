#include "graph/weights.h"

#include "base/checked.h"
#include "graph/arguments.h"
#include "graph/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cleave::graph {
namespace {

using Sources = std::optional<std::vector<ValueId>>;

constexpr std::size_t kMostNodes = 64;
/// Nesting limit for products of weights whose factors are products too.
constexpr int kMostMerges = 4;

Sources sourcesOf(const Graph& graph, ValueId value, int merges = kMostMerges);
bool mergesWeights(const Graph& graph, NodeId product, int merges);

/// A product or a lookup with a parameter as its weight: its result is an activation.
bool isPlainLayer(const Graph& graph, NodeId id, int merges) {
  const Node& node = graph.node(id);
  const auto& layer = operatorOf(graph.opName(node)).layer;
  if (!layer || layer->weight < 0) return false;
  return isParameter(graph, operandAt(node, static_cast<std::size_t>(layer->weight))) &&
         !mergesWeights(graph, id, merges);
}

/// The parameters that a value is computed from. nullopt if an input or a layer is among its sources, or if there are
/// too many nodes.
Sources sourcesOf(const Graph& graph, ValueId value, int merges) {
  if (!value.isValid()) return std::nullopt;
  std::vector<ValueId> parameters, open{value}, seen{value};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    const NodeId id = graph.value(at).producer;
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::Input) return std::nullopt;
    if (node.kind == NodeKind::Parameter) parameters.push_back(at);
    if (node.kind != NodeKind::Call) continue;
    if (isPlainLayer(graph, id, merges)) return std::nullopt;
    forEachOperand(node, [&](ValueId operand) {
      if (std::find(seen.begin(), seen.end(), operand) != seen.end()) return;
      seen.push_back(operand);
      open.push_back(operand);
    });
    if (seen.size() > kMostNodes) return std::nullopt;
  }
  std::sort(parameters.begin(), parameters.end());
  return parameters;
}

/// True if a product multiplies by the matrix, or by element-wise results and views of it.
bool isMultipliedBy(const Graph& graph, ValueId matrix) {
  constexpr std::size_t kMaxPathLength = 16;
  std::vector<ValueId> way{matrix};
  for (std::size_t at = 0; at < way.size() && at < kMaxPathLength; ++at) {
    for (const NodeId user : graph.value(way[at]).users) {
      const Node& node = graph.node(user);
      if (node.kind != NodeKind::Call || node.results.empty()) continue;
      const Operator& row = operatorOf(graph.opName(node));
      if (row.layer) {
        if (operandAt(node, static_cast<std::size_t>(std::max(0, row.layer->weight))) == way[at]) return true;
      } else if (row.cost == CostClass::Elementwise || row.cost == CostClass::Nothing) {
        const ValueId made = node.results.front();
        if (graph.shapeOf(made).size() == 2 && std::find(way.begin(), way.end(), made) == way.end())
          way.push_back(made);
      }
    }
  }
  return false;
}

bool mergesWeights(const Graph& graph, NodeId product, int merges) {
  const Node& node = graph.node(product);
  if (node.kind != NodeKind::Call || node.results.empty() || graph.shapeOf(node.results.front()).size() != 2)
    return false;
  const auto& layer = operatorOf(graph.opName(node)).layer;
  if (!layer || layer->kind != LayerKind::Linear || !isMultipliedBy(graph, node.results.front())) return false;
  return merges > 0 &&
         sourcesOf(graph, operandAt(node, static_cast<std::size_t>(layer->input)), merges - 1).has_value();
}

/// The rows of a packed parameter that this call reads: "[0:64]", ".3"; empty for all rows.
std::string pieceText(const Graph& graph, ValueId piece) {
  const Node& node = graph.node(graph.value(piece).producer);
  const std::string& op = graph.opName(node);
  const ValueId whole = operandAt(node, 0);
  if (!whole.isValid()) return {};
  const Shape& from = graph.shapeOf(whole);
  const int rank = static_cast<int>(from.size());
  const auto isFirst = [&](std::size_t argument) { return wrapDim(integerAt(node, argument).value_or(0), rank) == 0; };
  const auto rows = [&](std::int64_t first) {
    const std::int64_t count = graph.shapeOf(piece).empty() ? 1 : graph.shapeOf(piece)[0];
    return count == from[0] ? std::string() : fmt::format("[{}:{}]", first, first + count);
  };
  if (from.empty()) return {};
  const auto fromEnd = [&](std::int64_t index) { return index < 0 ? index + from[0] : index; };
  if (op == "aten::select.int" && isFirst(1)) return fmt::format(".{}", fromEnd(integerAt(node, 2).value_or(0)));
  if (op == "aten::slice.Tensor" && isFirst(1)) return rows(fromEnd(integerAt(node, 2).value_or(0)));
  if (!op.starts_with("aten::split") || !isFirst(2)) return {};
  std::int64_t first = 0;
  for (const ValueId result : node.results) {
    if (result == piece) return rows(first);
    if (!graph.shapeOf(result).empty()) first += graph.shapeOf(result)[0];
  }
  return {};
}

}  // namespace

bool isParameter(const Graph& graph, ValueId value) {
  return value.isValid() && graph.node(graph.value(value).producer).kind == NodeKind::Parameter;
}

bool makesWeight(const Graph& graph, NodeId product) { return mergesWeights(graph, product, kMostMerges); }

bool isWeight(const Graph& graph, ValueId value) {
  if (isParameter(graph, value)) return true;
  const auto parameters = sourcesOf(graph, value);
  return parameters && !parameters->empty();
}

bool isComputedFromSources(const Graph& graph, ValueId value) { return sourcesOf(graph, value).has_value(); }

std::vector<ValueId> parametersOf(const Graph& graph, ValueId value) {
  if (isParameter(graph, value)) return {value};
  return sourcesOf(graph, value).value_or(std::vector<ValueId>());
}

ValueId mainParameter(const Graph& graph, ValueId value) {
  const std::vector<ValueId> parameters = parametersOf(graph, value);
  const auto largest = std::max_element(parameters.begin(), parameters.end(), [&](ValueId a, ValueId b) {
    return elementCount(graph.shapeOf(a)) < elementCount(graph.shapeOf(b));
  });
  return largest == parameters.end() ? ValueId() : *largest;
}

std::int64_t parameterBytes(const Graph& graph, ValueId value) {
  std::int64_t bytes = 0;
  for (const ValueId parameter : parametersOf(graph, value)) bytes = saturatingAdd(bytes, graph.heldBytes(parameter));
  return bytes;
}

bool isCastParameter(const Graph& graph, ValueId value) {
  for (std::size_t steps = 0; steps < kMostNodes && value.isValid(); ++steps) {
    if (isParameter(graph, value)) return true;
    const Node& node = graph.node(graph.value(value).producer);
    if (node.kind != NodeKind::Call || !graph.opName(node).starts_with("aten::_to_copy")) return false;
    value = operandAt(node, 0);
  }
  return false;
}

std::string weightName(const Graph& graph, ValueId value) {
  const ValueId parameter = mainParameter(graph, value);
  if (!parameter.isValid()) return graph.value(value).name;
  std::string piece;
  for (ValueId at = value; at != parameter && piece.empty();) {
    const Node& node = graph.node(graph.value(at).producer);
    if (node.kind != NodeKind::Call) break;
    piece = pieceText(graph, at);
    // Follows the operand that is computed from the parameter.
    ValueId next;
    forEachOperand(node, [&](ValueId operand) {
      const auto from = parametersOf(graph, operand);
      if (!next.isValid() && std::find(from.begin(), from.end(), parameter) != from.end()) next = operand;
    });
    if (!next.isValid()) break;
    at = next;
  }
  return graph.value(parameter).name + piece;
}

}  // namespace cleave::graph
