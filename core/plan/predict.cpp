#include "graph/expert_memory.h"
#include "graph/liveness.h"
#include "graph/operators.h"
#include "plan/steps.h"

#include <algorithm>

/// Liveness over the rank program (graph/liveness.h). An all_reduce works in place where nothing reads its operand
/// later. Work space counts while its node runs:
///   all_gather, reduce_scatter along an inner dimension: c10d wants rank-major buffers, so the parts are copied once;
///   cross_entropy_loss: the log-softmax; its vocabulary-parallel form: the exponentials, and for half
///   precision the logits in f32;
///   experts: what one of them computes (graph/expert_memory.h).

namespace cleave::plan {
namespace {

using graph::Node;
using graph::NodeKind;

std::int64_t bytesOf(const Graph& graph, ValueId value) { return sizeInBytes(graph.value(value).type); }

bool hasOuterSizes(const Shape& shape, std::int64_t dim) {
  return std::any_of(shape.begin(), shape.begin() + std::min<std::ptrdiff_t>(dim, std::ssize(shape)),
                     [](std::int64_t size) { return size > 1; });
}

/// The shape of an operand; null where there is none: a graph of a file may call operators as it likes.
const graph::TensorType* operandOf(const Graph& graph, const Node& node, std::size_t index) {
  const auto* value = index < node.args.size() ? std::get_if<ValueId>(&node.args[index]) : nullptr;
  return value && value->isValid() ? &graph.value(*value).type : nullptr;
}

std::int64_t expertsWorkspace(const Graph& program, const Node& node) {
  const auto *ids = operandOf(program, node, 1),
             *down = operandOf(program, node, 4);  // [experts here, hidden, features here]
  if (!ids || !down || down->shape.size() != 3) return 0;
  const bool isPart = program.opName(node) == program::kLocalExperts;
  const auto* experts = isPart && node.args.size() > 6 ? std::get_if<std::int64_t>(&node.args[6]) : nullptr;
  const graph::ExpertMemory memory{
      .hidden = down->shape[1], .features = down->shape[2], .itemSize = graph::itemSize(down->dtype)};
  return memory.forward(graph::placesOfOne(graph::elementCount(ids->shape), experts ? *experts : down->shape[0]));
}

std::int64_t workspaceOf(const Graph& program, const Node& node) {
  const std::string& op = program.opName(node);
  if (op == program::kAllGather || op == program::kReduceScatter) {
    const ValueId whole = op == program::kAllGather ? node.results[0] : std::get<ValueId>(node.args[0]);
    return hasOuterSizes(program.shapeOf(whole), std::get<std::int64_t>(node.args[1])) ? bytesOf(program, whole) : 0;
  }
  if (op == graph::kMoeExperts || op == program::kLocalExperts) return expertsWorkspace(program, node);
  const auto* logits = operandOf(program, node, 0);
  if (op == "aten::cross_entropy_loss" && logits) return sizeInBytes(*logits);
  if (op == program::kVocabCrossEntropy && logits) {
    graph::TensorType exponentials = *logits;
    if (graph::itemSize(exponentials.dtype) < 4) exponentials.dtype = graph::DType::Float32;
    return sizeInBytes(exponentials);
  }
  return 0;
}

void predictActivations(const Graph& program, MemoryPrediction& memory) {
  std::vector<std::int64_t> bytes, workspace;
  bytes.reserve(program.values.size());
  workspace.reserve(program.nodes.size());
  for (const graph::Value& value : program.values) bytes.push_back(sizeInBytes(value.type));
  for (const Node& node : program.nodes) workspace.push_back(workspaceOf(program, node));
  graph::MemoryUse use = graph::Lifetimes(program, program::kAllReduce).run(bytes, workspace);
  memory.peakActivations = use.peak;
  memory.workspaceAtPeak = use.workspaceAtPeak;
  memory.peakNode = use.peakNode;
  memory.liveAfter = std::move(use.liveAfter);
}

}  // namespace

MemoryPrediction predictMemory(const Graph& program, const ShardMap& parameters) {
  MemoryPrediction memory;
  for (const ParameterShards& parameter : parameters) {
    const std::int64_t bytes = graph::sizeInBytes({parameter.type.dtype, parameter.localShape});
    memory.parameters += bytes;
    if (parameter.localShape == parameter.type.shape) memory.wholeParameters += bytes;
  }
  for (const Node& node : program.nodes) {
    if (node.kind == NodeKind::Constant) memory.constants += bytesOf(program, node.results[0]);
    if (node.kind == NodeKind::Input) memory.inputs += bytesOf(program, node.results[0]);
  }
  predictActivations(program, memory);
  return memory;
}

MemoryPrediction unsplitMemory(const Plan& plan) {
  ShardMap whole = plan.parameters;
  for (ParameterShards& parameter : whole) parameter.localShape = parameter.type.shape;
  return predictMemory(*plan.graph, whole);
}

}  // namespace cleave::plan
