#include "graph/layers.h"

#include "graph/arguments.h"
#include "graph/operators.h"
#include "graph/weights.h"

#include <vector>

namespace cleave::graph {
namespace {

/// Null if no node with this operator is a layer. An overload without a row of its own may have other arguments.
const LayerArguments* layerOf(std::string_view op) {
  // There are few rows, and every node is looked up. Comparing a few lengths is faster than a hash.
  static const std::vector<const Operator*> rows = [] {
    std::vector<const Operator*> layers;
    for (const Operator& row : operators()) {
      if (row.layer) layers.push_back(&row);
    }
    return layers;
  }();
  for (const Operator* row : rows) {
    if (row->name == op) return &*row->layer;
  }
  return nullptr;
}

constexpr std::size_t kActivation = 5;  ///< argument of experts

std::size_t rankOf(const Graph& graph, ValueId value) { return graph.shapeOf(value).size(); }

/// addmm scales bias and product by beta and alpha. Only the plain form is a layer.
bool isScaled(const Node& node, int factor) {
  if (factor < 0) return false;
  const auto first = static_cast<std::size_t>(factor);
  return numberAt(node, first).value_or(1) != 1 || numberAt(node, first + 1).value_or(1) != 1;
}

/// True for a Linear layer with a matrix for each item of a batch: [batch, in, out].
bool isOfMatrices(const LayerShape& layer) { return layer.outAxis == 2; }

/// True for [.., heads, tokens, e], if a view made the last dimension from features. A product with heads is part of an
/// attention, and its rules follow the split of the heads.
bool isOfHeads(const Graph& graph, ValueId input) {
  constexpr int kMaxPathLength = 8;
  if (rankOf(graph, input) < 4) return false;
  for (int steps = 0; steps < kMaxPathLength; ++steps) {
    const Node& node = graph.node(graph.value(input).producer);
    if (node.kind != NodeKind::Call || layerOf(graph.opName(node))) return false;
    const ValueId before = operandAt(node, 0);
    if (!before.isValid()) return false;
    const Shape &from = graph.shapeOf(before), &to = graph.shapeOf(input);
    if (graph.opName(node) == "aten::view" && !from.empty() && to.size() > from.size() && to.back() < from.back())
      return true;
    input = before;
  }
  return false;
}

/// A computed weight counts only if an activation is multiplied by it. Products of two computed weights, tables of
/// positions in attention, and a row of numbers times a column do not count.
bool isPreparedFor(const Graph& graph, const LayerShape& layer) {
  if (!isWeight(graph, layer.weight) || isComputedFromSources(graph, layer.input)) return false;
  const Shape& weight = graph.shapeOf(layer.weight);
  if (weight[static_cast<std::size_t>(layer.inAxis)] <= 1 || isOfHeads(graph, layer.input)) return false;
  const ValueId parameter = mainParameter(graph, layer.weight);
  return !isOfMatrices(layer) || elementCount(weight) <= elementCount(graph.shapeOf(parameter));
}

bool isProduct(const Graph& graph, NodeId node, const LayerShape& layer) {
  if (!layer.input.isValid() || !layer.weight.isValid()) return false;
  const std::size_t rank = isOfMatrices(layer) ? 3 : 2;
  if (rankOf(graph, layer.weight) != rank || rankOf(graph, layer.input) == 0) return false;
  if (layer.bias.isValid() && (!isWeight(graph, layer.bias) || rankOf(graph, layer.bias) != 1)) return false;
  return isParameter(graph, layer.weight) ? !makesWeight(graph, node) : isPreparedFor(graph, layer);
}

/// True for an embedding with scale_grad_by_freq. It scales a row's gradient by the count of its id, and a rank without
/// the row does not compute that.
bool countsItsIds(const Node& node, LayerKind kind) {
  constexpr std::size_t kScaleGradByFreq = 3;
  return kind == LayerKind::Embedding && flagAt(node, kScaleGradByFreq).value_or(false);
}

bool isEmbedding(const Graph& graph, const LayerShape& layer) {
  return isWeight(graph, layer.weight) && layer.input.isValid() && rankOf(graph, layer.weight) == 2;
}

bool areExperts(const Graph& graph, const LayerShape& layer) {
  if (!layer.input.isValid() || !layer.target.isValid() || !layer.shares.isValid()) return false;
  if (!isParameter(graph, layer.weight) || !isParameter(graph, layer.down) || layer.weight == layer.down) return false;
  const Shape& hidden = graph.shapeOf(layer.input);
  const Shape& gateUp = graph.shapeOf(layer.weight);
  const Shape& down = graph.shapeOf(layer.down);
  if (hidden.size() != 2 || gateUp.size() != 3 || down.size() != 3 || gateUp[0] != down[0]) return false;
  const auto out = static_cast<std::size_t>(layer.outAxis), in = static_cast<std::size_t>(layer.inAxis);
  if (gateUp[out] != 2 * down[in] || gateUp[3 - out] != hidden[1] || down[3 - in] != hidden[1]) return false;
  if (!layer.bias.isValid()) return true;
  return isParameter(graph, layer.bias) && graph.shapeOf(layer.bias) == Shape{gateUp[0], gateUp[out]};
}

bool isLayer(const Graph& graph, NodeId node, const LayerShape& layer) {
  switch (layer.kind) {
    case LayerKind::Linear: return isProduct(graph, node, layer);
    case LayerKind::Embedding: return isEmbedding(graph, layer);
    case LayerKind::CrossEntropy: return layer.input.isValid() && layer.target.isValid();
    case LayerKind::Experts: return areExperts(graph, layer);
  }
  return false;
}

}  // namespace

std::int64_t matricesOf(const Graph& graph, const LayerShape& linear) {
  return isOfMatrices(linear) ? graph.shapeOf(linear.weight)[0] : 1;
}

bool areInTurn(const LayerShape& experts) { return experts.outAxis == 2; }

bool mayBeLayer(std::string_view op) { return layerOf(op) != nullptr; }

std::optional<LayerShape> layerShape(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const LayerArguments* row = node.kind == NodeKind::Call ? layerOf(graph.opName(node)) : nullptr;
  if (!row || isScaled(node, row->factor) || countsItsIds(node, row->kind)) return std::nullopt;
  const auto operand = [&](int position) {
    return position < 0 ? ValueId() : operandAt(node, static_cast<std::size_t>(position));
  };
  LayerShape layer{.kind = row->kind,
                   .input = operand(row->input),
                   .weight = operand(row->weight),
                   .bias = operand(row->bias),
                   .down = operand(row->down),
                   .target = operand(row->target),
                   .shares = operand(row->shares),
                   .outAxis = row->outAxis,
                   .inAxis = row->outAxis == 0 ? 1 : row->outAxis - 1};
  if (layer.kind == LayerKind::Experts) {
    const bool inTurn =
        node.args.size() > kActivation && node.args[kActivation] == Argument(std::string(kClampedSwiglu));
    layer.outAxis = inTurn ? 2 : 1;
    layer.inAxis = 3 - layer.outAxis;
  }
  // A graph from a file may have such a product.
  const bool hasDimensions = !node.results.empty() && !graph.shapeOf(node.results.front()).empty();
  if (layer.kind != LayerKind::CrossEntropy && !hasDimensions) return std::nullopt;
  return isLayer(graph, id, layer) ? std::optional(layer) : std::nullopt;
}

std::string layerName(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string& scope = graph.scope(node.scope).path;
  const auto layer = layerShape(graph, id);
  // Class weights may be computed from constants only.
  const ValueId main = layer && layer->weight.isValid() ? mainParameter(graph, layer->weight) : ValueId();
  if (!main.isValid()) {
    if (!scope.empty()) return scope;
    return node.results.empty() ? std::string() : graph.value(node.results[0]).name;
  }
  std::string weight = weightName(graph, layer->weight);
  const std::string& parameter = graph.value(main).name;
  // A piece of a packed parameter has its own name, because its module has several such layers.
  if (weight != parameter) return weight;
  std::string owner = parameter.substr(0, std::min(parameter.size(), parameter.rfind('.')));
  // torch.nn.utils.parametrize keeps the original parameters of a weight in modules of its own.
  owner = owner.substr(0, owner.find(".parametrizations."));
  // A module may compute with the weights of a module inside it without calling that (torch.nn.MultiheadAttention).
  return scope.empty() || owner.starts_with(scope + '.') ? owner : scope;
}

}  // namespace cleave::graph
