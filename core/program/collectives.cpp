#include "program/collectives.h"

#include "graph/operators.h"

namespace cleave::program {
namespace {

using graph::ParallelOp;
using rules::CollectiveKind;

/// First operand of a call. All of Cleave's own operators have one.
const graph::TensorType& operandType(const graph::Graph& program, const graph::Node& node) {
  return program.value(std::get<graph::ValueId>(node.args.at(0))).type;
}

std::vector<Collective> ofVocabCrossEntropy(const graph::Graph& program, const graph::Node& node) {
  const graph::TensorType& logits = operandType(program, node);
  const graph::DType real = logits.dtype == graph::DType::Float64 ? graph::DType::Float64 : graph::DType::Float32;
  const std::int64_t bytes = graph::sizeInBytes({real, program.shapeOf(std::get<graph::ValueId>(node.args.at(1)))});
  return std::vector<Collective>(3, Collective{CollectiveKind::AllReduce, bytes});
}

}  // namespace

std::vector<Collective> collectivesOf(const graph::Graph& program, graph::NodeId id) {
  const graph::Node& node = program.node(id);
  const auto op = graph::parallelOp(program.opName(node));
  if (!op) return {};
  switch (*op) {
    case ParallelOp::AllReduce: return {{CollectiveKind::AllReduce, sizeInBytes(operandType(program, node))}};
    case ParallelOp::ReduceScatter: return {{CollectiveKind::ReduceScatter, sizeInBytes(operandType(program, node))}};
    case ParallelOp::GatherInput:
    case ParallelOp::AllGather: return {{CollectiveKind::AllGather, program.bytesOf(node.results.at(0))}};
    case ParallelOp::VocabCrossEntropy: return ofVocabCrossEntropy(program, node);
    case ParallelOp::Shard:
    case ParallelOp::VocabEmbedding:
    case ParallelOp::GroupedProduct:
    case ParallelOp::MoeExperts:
    case ParallelOp::LocalExperts:
    case ParallelOp::GradAllReduce:
    case ParallelOp::Dropout:
    case ParallelOp::Same: return {};
  }
  return {};
}

}  // namespace cleave::program
