#include "solve/cost/flops.h"

#include "graph/operators.h"
#include "solve/cost/operator_costs.h"

#include <algorithm>

namespace cleave::solve {
namespace {

using graph::Graph;
using graph::LayerShape;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;
using graph::ValueId;

ValueId valueAt(const Node& node, std::size_t position) {
  if (position >= node.args.size()) return {};
  const auto* value = std::get_if<ValueId>(&node.args[position]);
  return value ? *value : ValueId();
}

/// Sizes of the letters of an einsum that its result lacks, multiplied.
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
    // From the right, so that "..." in front takes what is left.
    for (std::size_t back = 1; back <= term.size() && back <= shape.size() && term[term.size() - back] != '.'; ++back) {
      const char letter = term[term.size() - back];
      if (seen.find(letter) != std::string::npos) continue;
      seen += letter;
      summed *= shape[shape.size() - back];
    }
  }
  return summed;
}

/// How many elements each element of a product's result sums over.
std::int64_t depthOfProduct(const Graph& graph, const Node& node) {
  const std::string& op = graph.opName(node);
  if (op.find("::einsum") != std::string::npos) return summedByEinsum(graph, node);
  const bool isAdded = op.find("::addm") != std::string::npos || op.find("::baddbmm") != std::string::npos;
  const ValueId left = valueAt(node, isAdded ? 1 : 0);
  return left.isValid() && !graph.shapeOf(left).empty() ? graph.shapeOf(left).back() : 1;
}

double count(const Graph& graph, ValueId value) {
  return value.isValid() ? static_cast<double>(graph::elementCount(graph.shapeOf(value))) : 0;
}

double layerFlops(const Graph& graph, const LayerShape& layer) {
  switch (layer.kind) {
    case graph::LayerKind::Linear: {
      const std::int64_t in = graph.shapeOf(layer.weight)[static_cast<std::size_t>(layer.inAxis)];
      return in == 0 ? 0 : 2 * (count(graph, layer.input) / static_cast<double>(in)) * count(graph, layer.weight);
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

double operatorFlops(const Graph& graph, const Node& node, Work work) {
  const double made = node.results.empty() ? 0 : count(graph, node.results[0]);
  const double depth = static_cast<double>(workDepth(graph, node, work));
  switch (work) {
    case Work::Nothing:
    case Work::Lookup: return 0;
    case Work::Product:
    case Work::Convolution: return 2 * made * depth;
    case Work::Attention: return 2 * depth * (count(graph, valueAt(node, 0)) + made);
    case Work::Elementwise: break;
  }
  double largest = 0;
  for (const ValueId result : node.results) largest = std::max(largest, count(graph, result));
  for (const ValueId operand : graph::operandsOf(node)) largest = std::max(largest, count(graph, operand));
  return largest;
}

}  // namespace

std::int64_t workDepth(const Graph& graph, const Node& node, Work work) {
  if (work == Work::Product) return depthOfProduct(graph, node);
  const ValueId second = valueAt(node, 1);
  if (!second.isValid()) return 1;
  const graph::Shape& shape = graph.shapeOf(second);
  if (work == Work::Attention) return shape.size() < 2 ? 1 : shape[shape.size() - 2];
  if (work == Work::Convolution) return shape.empty() || shape[0] == 0 ? 1 : graph::elementCount(shape) / shape[0];
  return 1;
}

std::vector<double> wholeFlops(const Graph& graph) {
  std::vector<OperatorCosts> costs;
  std::vector<bool> mayBeLayer;
  for (const std::string& op : graph.ops) {
    costs.push_back(operatorCosts(op));
    mayBeLayer.push_back(graph::mayBeLayer(op));
  }
  std::vector<double> flops(graph.nodes.size(), 0);
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::Call) continue;
    const auto layer = mayBeLayer[node.op.index()] ? graph::layerShape(graph, id) : std::nullopt;
    flops[id.index()] = layer ? layerFlops(graph, *layer) : operatorFlops(graph, node, costs[node.op.index()].work);
  }
  return flops;
}

}  // namespace cleave::solve
