#include "program/check.h"

#include "base/characters.h"
#include "base/checked.h"
#include "base/json.h"
#include "graph/arguments.h"
#include "graph/operators.h"
#include "program/limits.h"

#include <algorithm>

namespace cleave::program {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ParallelOp;
using graph::Shape;
using graph::ValueId;

constexpr std::size_t kMaxOperatorName = 120;

bool isWellFormed(std::string_view op) {
  const auto colons = op.find("::");
  const std::string_view name = colons == std::string_view::npos ? std::string_view() : op.substr(colons + 2);
  return !name.empty() && hasOnlyLettersDigitsAnd("_.", name) && op.size() <= kMaxOperatorName &&
         std::count(name.begin(), name.end(), '.') <= 1;
}

const graph::TensorType& typeAt(const Graph& program, const Node& node, std::size_t position) {
  return program.value(std::get<ValueId>(node.args[position])).type;
}

std::int64_t integerOf(const Node& node, std::size_t position) { return std::get<std::int64_t>(node.args[position]); }

/// True if `whole` is `part` with dimension `dim` times `ranks`.
bool isPartOf(const graph::TensorType& part, const graph::TensorType& whole, std::int64_t dim, int ranks) {
  if (dim < 0 || dim >= std::ssize(part.shape) || part.dtype != whole.dtype) return false;
  graph::TensorType scaled = part;
  const auto size = checkedMul(part.shape[static_cast<std::size_t>(dim)], ranks);
  if (!size) return false;
  scaled.shape[static_cast<std::size_t>(dim)] = *size;
  return scaled == whole;
}

// From here on the arguments are known to match the operator's row.

bool isVocabEmbedding(const Graph& program, const Node& node) {
  const auto& weight = typeAt(program, node, 0);
  if (weight.shape.size() != 2 || integerOf(node, 2) < 0) return false;
  graph::TensorType expected{weight.dtype, typeAt(program, node, 1).shape};
  expected.shape.push_back(weight.shape[1]);
  return program.value(node.results[0]).type == expected;
}

bool isVocabCrossEntropy(const Graph& program, const Node& node) {
  const std::int64_t reduction = integerOf(node, 3);
  const auto& logits = typeAt(program, node, 0);
  const auto& target = typeAt(program, node, 1);
  return reduction >= 0 && reduction <= 2 && graph::numberAt(node, 5) == 0.0 && logits.shape.size() == 2 &&
         target.shape.size() == 1 && target.shape[0] == logits.shape[0];
}

/// hidden [T,h], topk_ids and topk_weights [T,k]; gate_up [e,2f,h] and down [e,h,f], or with clamped_swiglu [e,h,2f]
/// and [e,f,h]; gate_up_bias [e,2f].
bool areExperts(const Graph& program, const Node& node) {
  const Shape& hidden = typeAt(program, node, 0).shape;
  const Shape& ids = typeAt(program, node, 1).shape;
  const Shape& gateUp = typeAt(program, node, 3).shape;
  const Shape& down = typeAt(program, node, 4).shape;
  if (hidden.size() != 2 || ids.size() != 2 || gateUp.size() != 3) return false;
  const bool areRoutes = ids[0] == hidden[0] && typeAt(program, node, 2).shape == ids;
  const bool inTurn = node.args[5] == graph::Argument(std::string(graph::kClampedSwiglu));
  const std::int64_t width = hidden[1], both = inTurn ? gateUp[2] : gateUp[1];
  const bool areWeights = both % 2 == 0 && (inTurn ? gateUp[1] : gateUp[2]) == width &&
                          down == (inTurn ? Shape{gateUp[0], both / 2, width} : Shape{gateUp[0], width, both / 2});
  const ValueId bias = graph::operandAt(node, 6);
  if (bias.isValid() && program.shapeOf(bias) != Shape{gateUp[0], both}) return false;
  return areRoutes && areWeights && program.value(node.results[0]).type == typeAt(program, node, 0);
}

/// An equal part of all experts.
bool areLocalExperts(const Graph& program, const Node& node, int ranks) {
  return areExperts(program, node) && checkedMul(typeAt(program, node, 3).shape[0], ranks) == integerOf(node, 9);
}

/// input [rows, in], weight [groups, in, out], ends [groups].
bool isGroupedProduct(const Graph& program, const Node& node) {
  const auto& input = typeAt(program, node, 0);
  const Shape& weight = typeAt(program, node, 1).shape;
  const auto& ends = typeAt(program, node, 2);
  if (input.shape.size() != 2 || weight.size() != 3 || weight[1] != input.shape[1]) return false;
  const graph::TensorType result{input.dtype, {input.shape[0], weight[2]}};
  return ends.shape == Shape{weight[0]} && !graph::isFloatingPoint(ends.dtype) &&
         program.value(node.results[0]).type == result;
}

/// A rank's part of the whole, and a probability.
bool isDropout(const Graph& program, const Node& node, int ranks) {
  const auto chance = graph::numberAt(node, 1);
  const auto placement = rules::Placement::parse(std::get<std::string>(node.args[4]));
  if (!chance || !(*chance >= 0 && *chance <= 1) || !placement) return false;
  const auto part = placement->localShape(std::get<std::vector<std::int64_t>>(node.args[3]), ranks);
  return part && *part == typeAt(program, node, 0).shape && integerOf(node, 2) >= 0;
}

bool fits(const Graph& program, const Node& node, int ranks) {
  const auto op = graph::parallelOp(program.opName(node));
  if (!op || node.results.size() != 1 || !graph::checkArguments(*op, node)) return false;
  const auto& operand = typeAt(program, node, 0);
  const auto& result = program.value(node.results[0]).type;
  switch (*op) {
    case ParallelOp::AllReduce:
    case ParallelOp::Same:
    case ParallelOp::GradAllReduce: return operand == result;
    case ParallelOp::GatherInput:
    case ParallelOp::AllGather: return isPartOf(operand, result, integerOf(node, 1), ranks);
    case ParallelOp::ReduceScatter:
    case ParallelOp::Shard: return isPartOf(result, operand, integerOf(node, 1), ranks);
    case ParallelOp::VocabEmbedding: return isVocabEmbedding(program, node);
    case ParallelOp::VocabCrossEntropy: return isVocabCrossEntropy(program, node);
    case ParallelOp::MoeExperts: return areExperts(program, node);
    case ParallelOp::GroupedProduct: return isGroupedProduct(program, node);
    case ParallelOp::LocalExperts: return areLocalExperts(program, node, ranks);
    case ParallelOp::Dropout: return operand == result && isDropout(program, node, ranks);
  }
  return false;
}

}  // namespace

Result<void> checkOperators(const Graph& graph) {
  for (const std::string& op : graph.ops) {
    if (!isWellFormed(op) || !(graph::parallelOp(op) || op.starts_with("aten::"))) {
      return fail(ErrorCode::BadInput,
                  "{} is not an operator for plans. Plans may use aten::NAME and Cleave's own operators.",
                  quotedText(op));
    }
  }
  return {};
}

Result<void> checkCollectives(const Graph& program, int ranks) {
  for (NodeId id : idRange<NodeId>(program.nodes.size())) {
    const Node& node = program.node(id);
    const std::string& op = program.opName(node);
    if (!op.starts_with("cleave::") || fits(program, node, ranks)) continue;
    const std::string result = node.results.empty() ? std::string("no result") : program.value(node.results[0]).name;
    return fail(ErrorCode::BadInput,
                "Node {} ({}, {}) has arguments or shapes that do not fit the operator on {} ranks.", id.index(), op,
                result, ranks);
  }
  return {};
}

Result<void> checkTotalBytes(const Graph& graph) {
  std::int64_t total = 0;
  for (const graph::Value& value : graph.values) {
    const auto sum = checkedAdd(total, graph::sizeInBytes(value.type));
    if (!sum || *sum > kMaxSize) {
      return fail(ErrorCode::BadInput, "With {} ({}) the values exceed 2^60 bytes in total.", value.name,
                  graph::toText(value.type));
    }
    total = *sum;
  }
  return {};
}

Result<void> checkPieces(const ParameterShards& parameter, const std::vector<ShardPiece>& pieces, int ranks, int rank) {
  const graph::Shape stored = parameter.storedShape();
  const auto covers = [&](const ShardPiece& piece, const StoredRegion& region) {
    if (region.dim < 0 || piece.dim >= 0)
      return piece.dim == region.dim && piece.start == region.start && piece.length == region.length;
    return region.start == 0 && region.length == stored[static_cast<std::size_t>(region.dim)];
  };
  const std::vector<StoredRegion> expected = storedRegions(parameter, ranks, rank);
  if (std::equal(pieces.begin(), pieces.end(), expected.begin(), expected.end(), covers)) return {};
  return fail(ErrorCode::BadInput, "the pieces of rank {} do not make up its part of {} ({} of {}).", rank,
              parameter.name, parameter.placement.text(), graph::toText(parameter.type.shape));
}

}  // namespace cleave::program
