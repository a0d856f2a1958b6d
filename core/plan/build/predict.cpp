#include "graph/arguments.h"
#include "graph/expert_memory.h"
#include "graph/liveness.h"
#include "graph/operators.h"
#include "graph/states.h"
#include "plan/build/steps.h"
#include "solve/cost/cost_model.h"

#include <algorithm>
#include <unordered_map>

/// Liveness over the rank program (graph/liveness.h). An all_reduce works in place where nothing reads its operand
/// later, and a cache is written in place: it is an input, whose memory is counted as such. Work space counts while its
/// node runs:
///   all_gather, reduce_scatter along an inner dimension: c10d wants rank-major buffers, so the parts are copied once;
///   cross_entropy_loss: the log-softmax; its vocabulary-parallel form: the exponentials, and for half
///   precision the logits in f32;
///   dropout: a byte for each element, which says whether it stays;
///   experts: what one of them computes (graph/expert_memory.h).

namespace cleave::plan {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::ParallelOp;

bool hasOuterSizes(const Shape& shape, std::int64_t dim) {
  return std::any_of(shape.begin(), shape.begin() + std::min<std::ptrdiff_t>(dim, std::ssize(shape)),
                     [](std::int64_t size) { return size > 1; });
}

/// The type of an operand; null if it is absent, because a graph from a file may call operators with any arguments.
const graph::TensorType* operandOf(const Graph& graph, const Node& node, std::size_t index) {
  const ValueId value = graph::operandAt(node, index);
  return value.isValid() ? &graph.value(value).type : nullptr;
}

/// `experts`: of all ranks; 0: those that the weights hold.
std::int64_t expertsWorkspace(const Graph& program, const Node& node, std::int64_t experts) {
  const auto *hidden = operandOf(program, node, 0), *ids = operandOf(program, node, 1),
             *down = operandOf(program, node, 4);
  if (!ids || !down || down->shape.size() != 3 || !hidden || hidden->shape.size() != 2) return 0;
  const auto* activation = graph::argumentAt(node, 5);
  const auto* name = activation ? std::get_if<std::string>(activation) : nullptr;
  const bool isClamped = name && *name == graph::kClampedSwiglu;
  const graph::ExpertMemory memory{.hidden = hidden->shape[1],
                                   .features = down->shape[isClamped ? 1 : 2],
                                   .itemSize = graph::itemSize(down->dtype),
                                   .isClamped = isClamped};
  return memory.forward(graph::placesOfOne(graph::elementCount(ids->shape), experts > 0 ? experts : down->shape[0]));
}

std::int64_t workspaceOf(const Graph& program, const Node& node) {
  const graph::Operator& op = graph::operatorOf(program.opName(node));
  const auto* first = operandOf(program, node, 0);
  const auto own = graph::parallelOp(program.opName(node));
  if (!own) {
    const bool isLoss = op.layer && op.layer->kind == graph::LayerKind::CrossEntropy;
    return isLoss && first ? sizeInBytes(*first) : 0;
  }
  const auto copied = [&](ValueId whole) {
    const auto dim = graph::integerAt(node, 1);
    return dim && hasOuterSizes(program.shapeOf(whole), *dim) ? program.bytesOf(whole) : 0;
  };
  switch (*own) {
    case ParallelOp::GatherInput:
    case ParallelOp::AllGather: return copied(node.results[0]);
    case ParallelOp::ReduceScatter: return first ? copied(graph::operandAt(node, 0)) : 0;
    case ParallelOp::MoeExperts: return expertsWorkspace(program, node, 0);
    case ParallelOp::LocalExperts: return expertsWorkspace(program, node, graph::integerAt(node, 9).value_or(0));
    case ParallelOp::VocabCrossEntropy: {
      if (!first) return 0;
      graph::TensorType exponentials = *first;
      if (graph::itemSize(exponentials.dtype) < 4) exponentials.dtype = graph::DType::Float32;
      return sizeInBytes(exponentials);
    }
    case ParallelOp::Dropout: return first ? graph::elementCount(first->shape) : 0;
    case ParallelOp::AllReduce:
    case ParallelOp::Shard:
    case ParallelOp::VocabEmbedding:
    case ParallelOp::GroupedProduct:
    case ParallelOp::Same:
    case ParallelOp::GradAllReduce: return 0;
  }
  return 0;
}

void predictActivations(const Graph& program, MemoryPrediction& memory) {
  std::vector<std::int64_t> bytes, workspace;
  bytes.reserve(program.values.size());
  workspace.reserve(program.nodes.size());
  for (const graph::Value& value : program.values) bytes.push_back(sizeInBytes(value.type));
  for (const Node& node : program.nodes) workspace.push_back(workspaceOf(program, node));
  for (NodeId id : idRange<NodeId>(program.nodes.size())) {
    if (graph::writesInPlace(program, id)) bytes[program.node(id).results.front().index()] = 0;
  }
  graph::MemoryUse use = graph::Lifetimes(program, graph::kAllReduce).run(bytes, workspace);
  memory.peakActivations = use.peak;
  memory.workspaceAtPeak = use.workspaceAtPeak;
  memory.peakNode = use.peakNode;
  memory.liveAfter = std::move(use.liveAfter);
}

/// Packed parameters by name.
std::unordered_map<std::string_view, ValueId> packedValues(const Graph& model) {
  std::unordered_map<std::string_view, ValueId> values;
  for (ValueId id : idRange<ValueId>(model.values.size())) {
    if (model.packedBytes.empty()) break;
    if (model.packedBytes.contains(model.value(id).name)) values.emplace(model.value(id).name, id);
  }
  return values;
}

}  // namespace

MemoryPrediction predictMemory(const Graph& program, const ShardMap& parameters, const Graph& model) {
  MemoryPrediction memory;
  const auto values = packedValues(model);
  for (const ParameterShards& parameter : parameters) {
    const std::int64_t count = graph::elementCount(parameter.localShape);
    const auto packed = values.find(parameter.name);
    const std::int64_t bytes =
        packed == values.end() ? count * graph::itemSize(parameter.type.dtype) : model.heldBytes(packed->second, count);
    memory.parameters += bytes;
    if (parameter.localShape == parameter.type.shape) memory.replicatedParameters += bytes;
  }
  for (const Node& node : program.nodes) {
    if (node.kind == NodeKind::Constant) memory.constants += program.bytesOf(node.results[0]);
    if (node.kind == NodeKind::Input) memory.inputs += program.bytesOf(node.results[0]);
  }
  predictActivations(program, memory);
  return memory;
}

}  // namespace cleave::plan
