#include "rules/weight_splits.h"

#include "graph/arguments.h"
#include "graph/layers.h"
#include "graph/weights.h"
#include "rules/layer_outputs.h"
#include "rules/rule.h"
#include "rules/strategies.h"

#include <algorithm>
#include <map>

namespace cleave::rules {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::string_view kLinear = "aten::linear";
constexpr std::size_t kWeight = 1, kBias = 2;
/// Limit on the values between a parameter and the layers that read it.
constexpr std::size_t kMostValues = 64;

/// A value between a parameter and a layer, and the value before it.
struct Step {
  ValueId value;
  std::size_t before = 0;  ///< index of a Step
};

/// A layer that reads a value computed from the parameter.
struct ReadingLayer {
  NodeId layer;
  graph::LayerShape shape;
  std::size_t step = 0;
};

struct Ways {
  std::vector<Step> steps;  ///< the first one is the parameter
  std::vector<ReadingLayer> readers;
};

Ways waysFrom(const Graph& graph, ValueId parameter) {
  Ways ways;
  ways.steps.push_back({parameter});
  const auto isKnown = [&](ValueId value) {
    return std::any_of(ways.steps.begin(), ways.steps.end(), [&](const Step& step) { return step.value == value; });
  };
  for (std::size_t at = 0; at < ways.steps.size() && at < kMostValues; ++at) {
    const ValueId value = ways.steps[at].value;
    for (const NodeId user : graph.value(value).users) {
      if (const auto shape = graph::layerShape(graph, user)) {
        if (shape->weight == value || shape->bias == value) ways.readers.push_back({user, *shape, at});
        continue;
      }
      for (const ValueId result : graph.node(user).results) {
        if (!isKnown(result) && graph::isWeight(graph, result)) ways.steps.push_back({result, at});
      }
    }
  }
  return ways;
}

/// The value after a chain of casts. Each keeps the shape and is the only reader of the value before it.
ValueId afterCasts(const Graph& graph, ValueId value) {
  for (std::size_t steps = 0; steps < kMostValues; ++steps) {
    const auto& users = graph.value(value).users;
    if (users.size() != 1) break;
    const Node& node = graph.node(users.front());
    if (node.kind != graph::NodeKind::Call || node.results.size() != 1 || graph::operandsOf(node).size() != 1 ||
        graph.shapeOf(node.results.front()) != graph.shapeOf(value) || graph::layerShape(graph, users.front()))
      break;
    value = node.results.front();
  }
  return value;
}

/// True if the node reads `value` only as the weight or the bias of a projection.
bool isProjection(const Graph& graph, NodeId user, ValueId value) {
  const Node& node = graph.node(user);
  if (node.kind != graph::NodeKind::Call || graph.opName(node) != kLinear) return false;
  const auto operands = graph::operandsOf(node);
  return std::count(operands.begin(), operands.end(), value) == 1 && operands.front() != value &&
         (graph::operandAt(node, kWeight) == value || graph::operandAt(node, kBias) == value);
}

/// Blocks of the columns that the readers of one piece require. Empty if they require nothing or disagree.
std::vector<Block> blocksOfReaders(const Graph& graph, ValueId piece, int worldSize) {
  piece = afterCasts(graph, piece);
  std::vector<Block> blocks;
  for (const NodeId user : graph.value(piece).users) {
    if (!isProjection(graph, user, piece)) return {};
    const ValueId made = graph.node(user).results.front();
    const Shape& shape = graph.shapeOf(made);
    const Placement plain = Placement::split(static_cast<int>(shape.size()) - 1);
    const Placement lane = columnsForReaders(graph, made, worldSize).value_or(plain);
    if (lane.isReplicatedOn(worldSize) || !lane.localShape(shape, worldSize)) return {};
    auto found = lane.blocksOf(shape.back());
    if (!blocks.empty() && blocks != found) return {};
    blocks = std::move(found);
  }
  return blocks;
}

/// A slice of the first dimension of a packed parameter; invalid for rows that nothing reads.
struct RowPiece {
  std::int64_t rows = 0;
  ValueId value;
};

/// The slices of the first dimension, in order, with the rows between them. Empty if slices overlap or something else
/// reads the value.
std::vector<RowPiece> slicesOf(const Graph& graph, ValueId packed) {
  std::map<std::int64_t, ValueId> starts;
  const Shape& shape = graph.shapeOf(packed);
  for (const NodeId user : graph.value(packed).users) {
    const Node& node = graph.node(user);
    const int rank = static_cast<int>(shape.size());
    if (graph.opName(node) != "aten::slice.Tensor" || graph::integerAt(node, 4).value_or(1) != 1 ||
        graph::wrapDim(graph::integerAt(node, 1).value_or(0), rank) != 0)
      return {};
    const std::int64_t start = graph::integerAt(node, 2).value_or(0);
    if (!starts.emplace(start < 0 ? start + shape[0] : start, node.results.front()).second) return {};
  }
  std::vector<RowPiece> pieces;
  std::int64_t end = 0;
  for (const auto& [start, value] : starts) {
    if (start < end) return {};
    if (start > end) pieces.push_back({start - end, {}});
    pieces.push_back({graph.shapeOf(value)[0], value});
    end = start + pieces.back().rows;
  }
  if (end > shape[0]) return {};
  if (end < shape[0] && end > 0) pieces.push_back({shape[0] - end, {}});
  return pieces;
}

/// The split of the parameter's first dimension that gives each rank its columns of every projection. The projections
/// read the parameter or slices of it as weight or bias. nullopt if something else reads it too, or if the columns do
/// not divide.
std::optional<Placement> columnsOfPieces(const Graph& graph, ValueId parameter, int worldSize) {
  const Shape& shape = graph.shapeOf(parameter);
  if (shape.empty() || shape.size() > 2) return std::nullopt;
  const ValueId packed = afterCasts(graph, parameter);
  std::vector<RowPiece> pieces;
  for (const ValueId piece : piecesAlong(graph, packed, 0)) pieces.push_back({graph.shapeOf(piece)[0], piece});
  if (pieces.empty()) pieces = slicesOf(graph, packed);
  if (pieces.empty()) pieces.push_back({shape[0], packed});
  std::vector<Block> all;
  for (const RowPiece& piece : pieces) {
    auto blocks = piece.value.isValid() ? blocksOfReaders(graph, piece.value, worldSize)
                                        : std::vector<Block>{{piece.rows, replicasFor(piece.rows, worldSize)}};
    if (blocks.empty()) return std::nullopt;
    std::ranges::move(blocks, std::back_inserter(all));
  }
  return Placement::split(0).withBlocks(std::move(all));
}

/// `placement` of a dimension of `size` elements, moved to the same dimension, counted from the last, of another
/// operand. Replicated if that dimension has another size.
Placement alongside(const Placement& placement, const Shape& from, const Shape& other) {
  const int moved = placement.firstDim() + static_cast<int>(other.size()) - static_cast<int>(from.size());
  const bool isJoint = placement.firstDim() != placement.lastDim();
  if (isJoint || moved < 0 || sizeAt(other, moved) != sizeAt(from, placement.firstDim())) return {};
  return placement.shifted(moved - placement.firstDim());
}

/// The node's result placement if `operand` has `placement` and its other operands are replicated or split alongside.
/// nullopt if both conflict.
std::optional<Placement> passed(const Graph& graph, NodeId id, ValueId operand, const Placement& placement,
                                ValueId result, int worldSize) {
  const Node& node = graph.node(id);
  const auto operands = graph::operandsOf(node);
  for (const bool isAlongside : {false, true}) {
    std::vector<Placement> placements;
    for (const ValueId other : operands) {
      const bool isSame = other == operand;
      placements.push_back(isSame        ? placement
                           : isAlongside ? alongside(placement, graph.shapeOf(operand), graph.shapeOf(other))
                                         : Placement());
    }
    const auto verdict = applyRule({graph, id, placements, worldSize});
    const auto* claims = std::get_if<std::vector<Claim>>(&verdict);
    if (!claims || claims->empty()) continue;
    return claims->front().results[graph.value(result).resultIndex];
  }
  return std::nullopt;
}

/// The placement at the end of a path, for a placement of the parameter.
std::optional<Placement> atEnd(const Graph& graph, const Ways& ways, std::size_t step, const Placement& placement,
                               int worldSize) {
  if (step == 0) return placement;
  const Step& end = ways.steps[step];
  const auto before = atEnd(graph, ways, end.before, placement, worldSize);
  if (!before || before->isReplicated()) return std::nullopt;
  return passed(graph, graph.value(end.value).producer, ways.steps[end.before].value, *before, end.value, worldSize);
}

class Splits {
 public:
  Splits(const Graph& graph, ValueId parameter, const StrategyContext& context)
      : m_graph(graph), m_shape(graph.shapeOf(parameter)), m_context(context), m_ways(waysFrom(graph, parameter)) {}

  bool areAnyPrepared() const {
    return std::any_of(m_ways.readers.begin(), m_ways.readers.end(), [](const ReadingLayer& r) { return r.step > 0; });
  }
  void add(const Placement& placement) {
    if (placement.isReplicatedOn(m_context.worldSize) || !placement.localShape(m_shape, m_context.worldSize)) return;
    if (std::find(m_found.begin(), m_found.end(), placement) == m_found.end()) m_found.push_back(placement);
  }
  std::vector<Placement> take() && {
    for (const ReadingLayer& reader : m_ways.readers) {
      const ValueId value = m_ways.steps[reader.step].value;
      for (const LayerStrategy& option : layerStrategies(m_graph, reader.layer, reader.shape, m_context).offered) {
        const Placement& wanted = reader.shape.weight == value ? option.weight : option.bias;
        if (wanted.isSplit()) addBefore(reader, wanted);
      }
    }
    return std::move(m_found);
  }

 private:
  /// Adds placements of the parameter that lead to `wanted`: the same split of any dimension, or a plain one.
  void addBefore(const ReadingLayer& reader, const Placement& wanted) {
    for (int dim = 0; dim < static_cast<int>(m_shape.size()); ++dim) {
      const bool isJoint = wanted.firstDim() != wanted.lastDim();
      if (!isJoint) tryOut(reader, wanted.shifted(dim - wanted.firstDim()), wanted);
      tryOut(reader, Placement::split(dim), wanted);
    }
  }
  void tryOut(const ReadingLayer& reader, const Placement& placement, const Placement& wanted) {
    if (!placement.localShape(m_shape, m_context.worldSize)) return;
    if (atEnd(m_graph, m_ways, reader.step, placement, m_context.worldSize) == wanted) add(placement);
  }

  const Graph& m_graph;
  const Shape& m_shape;
  const StrategyContext& m_context;
  const Ways m_ways;
  std::vector<Placement> m_found;
};

}  // namespace

std::vector<Placement> weightSplits(const Graph& graph, ValueId parameter, const StrategyContext& context) {
  Splits splits(graph, parameter, context);
  const auto columns = columnsOfPieces(graph, parameter, context.worldSize);
  if (columns && context.candidateSet == CandidateSet::Full) splits.add(*columns);
  if (!splits.areAnyPrepared()) return columns ? std::vector<Placement>{*columns} : std::vector<Placement>();
  return std::move(splits).take();
}

}  // namespace cleave::rules
