#include "program/check.h"

#include "base/checked.h"
#include "base/json.h"
#include "graph/operators.h"
#include "program/operators.h"
#include "program/rank_program.h"

#include <algorithm>
#include <array>

namespace cleave::program {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;

constexpr std::size_t kMaxOperatorName = 120;
constexpr std::array kOwnOperators{kAllReduce,     kAllGather,      kReduceScatter,
                                   kShard,         kVocabEmbedding, kVocabCrossEntropy,
                                   kGradAllReduce, kLocalExperts,   graph::kMoeExperts};

bool isWellFormed(std::string_view op) {
  const auto colons = op.find("::");
  const std::string_view name = colons == std::string_view::npos ? std::string_view() : op.substr(colons + 2);
  const bool isPlain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  return !name.empty() && isPlain && op.size() <= kMaxOperatorName && std::count(name.begin(), name.end(), '.') <= 1;
}

template <class T>
bool has(const Node& node, std::size_t position) {
  return position < node.args.size() && std::holds_alternative<T>(node.args[position]);
}

const graph::TensorType& typeAt(const Graph& program, const Node& node, std::size_t position) {
  return program.value(std::get<ValueId>(node.args[position])).type;
}

/// `whole` is `part` with dimension `dim` times `ranks`.
bool isPartOf(const graph::TensorType& part, const graph::TensorType& whole, std::int64_t dim, int ranks) {
  if (dim < 0 || dim >= std::ssize(part.shape) || part.dtype != whole.dtype) return false;
  graph::TensorType scaled = part;
  const auto size = checkedMul(part.shape[static_cast<std::size_t>(dim)], ranks);
  if (!size) return false;
  scaled.shape[static_cast<std::size_t>(dim)] = *size;
  return scaled == whole;
}

bool isVocabEmbedding(const Graph& program, const Node& node) {
  if (node.args.size() != 4 || !has<ValueId>(node, 0) || !has<ValueId>(node, 1) || !has<std::int64_t>(node, 2) ||
      !has<std::int64_t>(node, 3)) {
    return false;
  }
  const auto& weight = typeAt(program, node, 0);
  if (weight.shape.size() != 2 || std::get<std::int64_t>(node.args[2]) < 0) return false;
  graph::TensorType expected{weight.dtype, typeAt(program, node, 1).shape};
  expected.shape.push_back(weight.shape[1]);
  return program.value(node.results[0]).type == expected;
}

bool isVocabCrossEntropy(const Graph& program, const Node& node) {
  if (node.args.size() != 7 || !has<ValueId>(node, 0) || !has<ValueId>(node, 1) || !has<std::int64_t>(node, 6))
    return false;
  const bool isMeanOrSum = has<std::int64_t>(node, 3) &&
                           (std::get<std::int64_t>(node.args[3]) == 1 || std::get<std::int64_t>(node.args[3]) == 2);
  const bool isPlain = has<std::monostate>(node, 2) && has<double>(node, 5) && std::get<double>(node.args[5]) == 0.0;
  const auto& logits = typeAt(program, node, 0);
  const auto& target = typeAt(program, node, 1);
  const bool isNone = has<std::int64_t>(node, 3) && std::get<std::int64_t>(node.args[3]) == 0;
  return (isMeanOrSum || isNone) && isPlain && has<std::int64_t>(node, 4) && logits.shape.size() == 2 &&
         target.shape.size() == 1 && target.shape[0] == logits.shape[0];
}

/// hidden [T,h], topk_ids and topk_weights [T,k], gate_up [e,2f,h], down [e,h,f], activation and, for a part, the
/// number of all experts.
bool isExperts(const Graph& program, const Node& node, bool isPart, int ranks) {
  if (node.args.size() != (isPart ? 7u : 6u) || !has<std::string>(node, 5)) return false;
  for (std::size_t i = 0; i < 5; ++i) {
    if (!has<ValueId>(node, i)) return false;
  }
  const Shape& hidden = typeAt(program, node, 0).shape;
  const Shape& ids = typeAt(program, node, 1).shape;
  const Shape& gateUp = typeAt(program, node, 3).shape;
  const Shape& down = typeAt(program, node, 4).shape;
  if (hidden.size() != 2 || ids.size() != 2 || gateUp.size() != 3) return false;
  const bool areRoutes = ids[0] == hidden[0] && typeAt(program, node, 2).shape == ids;
  const bool areWeights =
      gateUp[1] % 2 == 0 && gateUp[2] == hidden[1] && down == Shape{gateUp[0], hidden[1], gateUp[1] / 2};
  const bool areAll =
      !isPart || (has<std::int64_t>(node, 6) && checkedMul(gateUp[0], ranks) == std::get<std::int64_t>(node.args[6]));
  return areRoutes && areWeights && areAll && program.value(node.results[0]).type == typeAt(program, node, 0);
}

bool fits(const Graph& program, const Node& node, std::string_view op, int ranks) {
  if (node.results.size() != 1 || !has<ValueId>(node, 0)) return false;
  const auto& operand = typeAt(program, node, 0);
  const auto& result = program.value(node.results[0]).type;
  if (op == kAllReduce || op == kGradAllReduce) return node.args.size() == 1 && operand == result;
  if (op == kVocabEmbedding) return isVocabEmbedding(program, node);
  if (op == kVocabCrossEntropy) return isVocabCrossEntropy(program, node);
  if (op == kLocalExperts || op == graph::kMoeExperts) return isExperts(program, node, op == kLocalExperts, ranks);
  if (node.args.size() != 2 || !has<std::int64_t>(node, 1)) return false;
  const std::int64_t dim = std::get<std::int64_t>(node.args[1]);
  return op == kAllGather ? isPartOf(operand, result, dim, ranks) : isPartOf(result, operand, dim, ranks);
}

}  // namespace

Result<void> checkOperators(const Graph& graph) {
  for (const std::string& op : graph.ops) {
    const bool isOwn = std::find(kOwnOperators.begin(), kOwnOperators.end(), op) != kOwnOperators.end();
    if (!isWellFormed(op) || !(isOwn || op.starts_with("aten::"))) {
      return fail(ErrorCode::BadInput, "{} is no operator that a plan may use (aten::NAME, or one of Cleave's own).",
                  quotedText(op));
    }
  }
  return {};
}

Result<void> checkCollectives(const Graph& program, int ranks) {
  for (NodeId id : idRange<NodeId>(program.nodes.size())) {
    const Node& node = program.node(id);
    const std::string& op = program.opName(node);
    if (!op.starts_with("cleave::") || fits(program, node, op, ranks)) continue;
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
      return fail(ErrorCode::BadInput, "{} ({}) makes the values exceed 2^60 bytes together.", value.name,
                  graph::toText(value.type));
    }
    total = *sum;
  }
  return {};
}

Result<void> checkPieces(const ParameterShards& parameter, const std::vector<ShardPiece>& pieces, int ranks, int rank) {
  std::vector<rules::Range> expected;
  const bool isWhole = parameter.placement.isReplicated() || ranks == 1;
  if (!isWhole) expected = parameter.placement.ranges(parameter.type.shape, ranks, rank);
  std::erase_if(expected, [](const rules::Range& range) { return range.length == 0; });
  const auto covers = [&](const ShardPiece& piece, const rules::Range& range) {
    if (piece.dim >= 0)
      return piece.dim == parameter.placement.firstDim() && piece.start == range.start && piece.length == range.length;
    return range.start == 0 &&
           range.length == parameter.type.shape[static_cast<std::size_t>(parameter.placement.firstDim())];
  };
  const bool isRight = isWhole ? pieces.size() == 1 && pieces[0].dim < 0
                               : std::equal(pieces.begin(), pieces.end(), expected.begin(), expected.end(), covers);
  if (isRight) return {};
  return fail(ErrorCode::BadInput, "the pieces of rank {} do not make up its part of {} ({} of {}).", rank,
              parameter.name, parameter.placement.text(), graph::toText(parameter.type.shape));
}

}  // namespace cleave::program
