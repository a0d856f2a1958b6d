#include "graph/liveness.h"
#include "plan/steps.h"

#include <algorithm>

/// Liveness over the rank program (graph/liveness.h). An all_reduce works in place where nothing reads its operand later.
/// Work space counts while its node runs:
///   all_gather, reduce_scatter along an inner dimension: c10d wants rank-major buffers, so the parts are copied once;
///   cross_entropy_loss: the log-softmax; its vocabulary-parallel form: the exponentials, and for half
///   precision the logits in f32.

namespace cleave::plan {
namespace {

using graph::Node;
using graph::NodeKind;

std::int64_t bytesOf(const Graph& graph, ValueId value) { return sizeInBytes(graph.value(value).type); }

bool hasOuterSizes(const Shape& shape, std::int64_t dim) {
  return std::any_of(shape.begin(), shape.begin() + std::min<std::ptrdiff_t>(dim, std::ssize(shape)), [](std::int64_t size) { return size > 1; });
}

std::int64_t workspaceOf(const Graph& program, const Node& node) {
  const std::string& op = program.opName(node);
  if (op == kAllGather || op == kReduceScatter) {
    const ValueId whole = op == kAllGather ? node.results[0] : std::get<ValueId>(node.args[0]);
    return hasOuterSizes(program.shapeOf(whole), std::get<std::int64_t>(node.args[1])) ? bytesOf(program, whole) : 0;
  }
  if (op == "aten::cross_entropy_loss") return bytesOf(program, std::get<ValueId>(node.args[0]));
  if (op == kVocabCrossEntropy) {
    graph::TensorType exponentials = program.value(std::get<ValueId>(node.args[0])).type;
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
  graph::MemoryUse use = graph::Lifetimes(program, kAllReduce).run(bytes, workspace);
  memory.peakActivations = use.peak;
  memory.workspaceAtPeak = use.workspaceAtPeak;
  memory.peakNode = use.peakNode;
  memory.liveAfter = std::move(use.liveAfter);
}

}  // namespace

MemoryPrediction predictMemory(const Graph& program, const std::vector<ParameterPlan>& parameters) {
  MemoryPrediction memory;
  for (const ParameterPlan& parameter : parameters) {
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

}  // namespace cleave::plan
