#include "solve/cost/flops.h"

#include "graph/arguments.h"
#include "graph/layers.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using graph::CostClass;
using graph::Graph;
using graph::LayerShape;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::operandAt;
using graph::Operator;
using graph::ValueId;

/// Product of the sizes of the einsum letters that are not in its result.
std::int64_t summedByEinsum(const Graph& graph, const Node& node) {
  const auto* equation = node.args.empty() ? nullptr : std::get_if<std::string>(&node.args[0]);
  const auto arrow = equation ? equation->find("->") : std::string::npos;
  if (arrow == std::string::npos) return 1;
  std::string seen = equation->substr(arrow + 2);
  const std::string terms = equation->substr(0, arrow);
  std::int64_t summed = 1;
  std::size_t begin = 0;
  for (ValueId operand : graph::operandsOf(node)) {
    if (begin > terms.size()) break;
    std::string term = terms.substr(begin, terms.find(',', begin) - begin);
    begin += term.size() + 1;
    std::erase(term, ' ');
    const graph::Shape& shape = graph.shapeOf(operand);
    // The letters are matched from the right, so that a leading "..." matches the rest.
    for (std::size_t back = 1; back <= term.size() && back <= shape.size() && term[term.size() - back] != '.'; ++back) {
      const char letter = term[term.size() - back];
      if (seen.find(letter) != std::string::npos) continue;
      seen += letter;
      summed *= shape[shape.size() - back];
    }
  }
  return summed;
}

/// Number of summed elements per element of a product's result.
std::int64_t depthOfProduct(const Graph& graph, const Node& node, const Operator& op) {
  if (op.summed == graph::kSummedByEquation) return summedByEinsum(graph, node);
  const ValueId left = operandAt(node, static_cast<std::size_t>(op.summed));
  return left.isValid() && !graph.shapeOf(left).empty() ? graph.shapeOf(left).back() : 1;
}

double count(const Graph& graph, ValueId value) {
  return value.isValid() ? static_cast<double>(graph::elementCount(graph.shapeOf(value))) : 0;
}

double layerFlops(const Graph& graph, const LayerShape& layer) {
  switch (layer.kind) {
    case graph::LayerKind::Linear: {
      const std::int64_t in = graph.shapeOf(layer.weight)[static_cast<std::size_t>(layer.inAxis)];
      const auto each = static_cast<double>(in * graph::matricesOf(graph, layer));
      return each == 0 ? 0 : 2 * (count(graph, layer.input) / each) * count(graph, layer.weight);
    }
    case graph::LayerKind::Embedding: return 0;
    case graph::LayerKind::CrossEntropy: return count(graph, layer.input);
    case graph::LayerKind::Experts: {
      const std::int64_t experts = graph.shapeOf(layer.weight)[0];
      if (experts == 0) return 0;
      const double perExpert = count(graph, layer.target) / static_cast<double>(experts);
      return 2 * perExpert * (count(graph, layer.weight) + count(graph, layer.down));
    }
  }
  return 0;
}

double operatorFlops(const Graph& graph, const Node& node, const Operator& op) {
  const double made = node.results.empty() ? 0 : count(graph, node.results[0]);
  const double depth = static_cast<double>(workDepth(graph, node, op));
  switch (op.cost) {
    case CostClass::Nothing:
    case CostClass::Lookup: return 0;
    case CostClass::Product:
    case CostClass::Convolution: return 2 * made * depth;
    case CostClass::Attention: return 2 * depth * (count(graph, operandAt(node, 0)) + made);
    case CostClass::Elementwise: break;
  }
  double largest = 0;
  for (const ValueId result : node.results) largest = std::max(largest, count(graph, result));
  for (const ValueId operand : graph::operandsOf(node)) largest = std::max(largest, count(graph, operand));
  return largest;
}

}  // namespace

std::int64_t workDepth(const Graph& graph, const Node& node, const Operator& op) {
  if (op.cost == CostClass::Product) return depthOfProduct(graph, node, op);
  const ValueId second = operandAt(node, 1);
  if (!second.isValid()) return 1;
  const graph::Shape& shape = graph.shapeOf(second);
  if (op.cost == CostClass::Attention) return shape.size() < 2 ? 1 : shape[shape.size() - 2];
  if (op.cost == CostClass::Convolution)
    return shape.empty() || shape[0] == 0 ? 1 : graph::elementCount(shape) / shape[0];
  return 1;
}

std::vector<double> replicatedFlops(const Graph& graph) {
  std::vector<const Operator*> rows;
  std::vector<bool> mayBeLayer;
  for (const std::string& op : graph.ops) {
    rows.push_back(&graph::operatorOf(op));
    mayBeLayer.push_back(graph::mayBeLayer(op));
  }
  std::vector<double> flops(graph.nodes.size(), 0);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::Call) continue;
    const auto layer = mayBeLayer[node.op.index()] ? graph::layerShape(graph, id) : std::nullopt;
    flops[id.index()] = layer ? layerFlops(graph, *layer) : operatorFlops(graph, node, *rows[node.op.index()]);
  }
  return flops;
}

}  // namespace cleave::solve
