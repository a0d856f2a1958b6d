#include "rules/weight_splits.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "rules/layer_outputs.h"

#include <algorithm>

namespace cleave::rules {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kLinear = "aten::linear";
constexpr std::size_t kWeight = 1, kBias = 2;

/// Reads `value` as the weight or the bias of a product that is no layer, and as nothing else.
bool isProjection(const Graph& graph, NodeId user, ValueId value) {
  const Node& node = graph.node(user);
  if (node.kind != graph::NodeKind::Call || graph.opName(node) != kLinear || graph::layerShape(graph, user))
    return false;
  const auto operands = graph::operandsOf(node);
  return std::count(operands.begin(), operands.end(), value) == 1 && operands.front() != value &&
         (graph::operandAt(node, kWeight) == value || graph::operandAt(node, kBias) == value);
}

/// Blocks of the columns that the readers of one piece make; empty: they want none, or not the same.
std::vector<Block> blocksOfReaders(const Graph& graph, ValueId piece, int worldSize) {
  std::vector<Block> blocks;
  for (const NodeId user : graph.value(piece).users) {
    if (!isProjection(graph, user, piece)) return {};
    const ValueId made = graph.node(user).results.front();
    const Shape& shape = graph.shapeOf(made);
    const Placement plain = Placement::split(static_cast<int>(shape.size()) - 1);
    const Placement lane = columnsBehind(graph, made, worldSize).value_or(plain);
    if (lane.isReplicatedOn(worldSize) || !lane.localShape(shape, worldSize)) return {};
    auto found = lane.blocksOf(shape.back());
    if (!blocks.empty() && blocks != found) return {};
    blocks = std::move(found);
  }
  return blocks;
}

}  // namespace

std::optional<Placement> columnsOfPieces(const Graph& graph, ValueId parameter, int worldSize) {
  const Shape& shape = graph.shapeOf(parameter);
  if (shape.empty() || shape.size() > 2) return std::nullopt;
  std::vector<ValueId> pieces = piecesAlong(graph, parameter, 0);
  if (pieces.empty()) pieces.push_back(parameter);
  std::vector<Block> all;
  for (const ValueId piece : pieces) {
    auto blocks = blocksOfReaders(graph, piece, worldSize);
    if (blocks.empty()) return std::nullopt;
    std::ranges::move(blocks, std::back_inserter(all));
  }
  return Placement::split(0).withBlocks(std::move(all));
}

}  // namespace cleave::rules
