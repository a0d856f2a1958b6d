#include "graph/operators.h"
#include "plan/steps.h"

#include <algorithm>
#include <unordered_map>

/// Liveness over the rank program as the interpreter runs it: a result's memory is allocated when its node runs and
/// freed after the last node that reads it or a view of it; graph outputs stay to the end. Work space counts while its
/// node runs:
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

class Liveness {
 public:
  explicit Liveness(const Graph& program)
      : m_program(program), m_owner(program.values.size()), m_lastUse(program.values.size()) {
    findOwners();
    findLastUses();
  }

  void run(MemoryPrediction& memory) {
    std::int64_t live = 0;
    memory.liveAfter.reserve(m_program.nodes.size());
    for (NodeId id : idRange<NodeId>(m_program.nodes.size())) {
      const Node& node = m_program.node(id);
      if (node.kind == NodeKind::Call) {
        if (!reusesOperand(id)) live += ownBytes(node);
        const std::int64_t workspace = workspaceOf(m_program, node);
        if (live + workspace > memory.peakActivations || !memory.peakNode.isValid()) {
          memory.peakActivations = live + workspace;
          memory.workspaceAtPeak = workspace;
          memory.peakNode = id;
        }
        live -= freedBy(id);
      }
      memory.liveAfter.push_back(live);
    }
  }

 private:
  static constexpr std::uint32_t kForever = 0xffffffffu;

  bool isActivation(ValueId value) const {
    return m_program.node(m_program.value(value).producer).kind == NodeKind::Call && m_owner[value.index()] == value;
  }

  /// A view's memory is its first operand's; all_reduce works in place where nothing reads its operand later.
  void findOwners() {
    for (NodeId id : idRange<NodeId>(m_program.nodes.size())) {
      const Node& node = m_program.node(id);
      const auto* base = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
      const bool isView = base && graph::isAliasing(m_program.opName(node));
      for (ValueId result : node.results) m_owner[result.index()] = isView ? m_owner[base->index()] : result;
    }
  }

  void findLastUses() {
    for (ValueId value : idRange<ValueId>(m_program.values.size())) {
      const graph::Value& info = m_program.value(value);
      const std::uint32_t last = info.users.empty() ? info.producer.raw() : info.users.back().raw();
      std::uint32_t& ownersLast = m_lastUse[m_owner[value.index()].index()];
      ownersLast = std::max(ownersLast, last);
    }
    for (const graph::Output& output : m_program.outputs) m_lastUse[m_owner[output.value.index()].index()] = kForever;
    for (ValueId value : idRange<ValueId>(m_program.values.size())) {
      if (isActivation(value)) m_diesAfter[m_lastUse[value.index()]].push_back(value);
    }
  }

  bool reusesOperand(NodeId id) const {
    const Node& node = m_program.node(id);
    if (m_program.opName(node) != kAllReduce) return false;
    const ValueId operand = m_owner[std::get<ValueId>(node.args[0]).index()];
    return isActivation(operand) && m_lastUse[operand.index()] == id.raw();
  }

  std::int64_t ownBytes(const Node& node) const {
    std::int64_t bytes = 0;
    for (ValueId result : node.results) bytes += isActivation(result) ? bytesOf(m_program, result) : 0;
    return bytes;
  }

  std::int64_t freedBy(NodeId id) const {
    std::int64_t bytes = 0;
    if (const auto dying = m_diesAfter.find(id.raw()); dying != m_diesAfter.end()) {
      for (ValueId value : dying->second) bytes += bytesOf(m_program, value);
    }
    // The operand that an all_reduce took over lives on as its result.
    if (reusesOperand(id)) bytes -= bytesOf(m_program, m_program.node(id).results[0]);
    return bytes;
  }

  const Graph& m_program;
  std::vector<ValueId> m_owner;          ///< by value: the value whose memory it is
  std::vector<std::uint32_t> m_lastUse;  ///< by owner: last node that reads it or a view of it
  std::unordered_map<std::uint32_t, std::vector<ValueId>> m_diesAfter;
};

}  // namespace

MemoryPrediction predictMemory(const Graph& program, const std::vector<ParameterPlan>& parameters) {
  MemoryPrediction memory;
  for (const ParameterPlan& parameter : parameters) {
    const std::int64_t bytes = graph::sizeInBytes({parameter.type.dtype, parameter.localShape});
    memory.parameters += bytes;
    if (parameter.placement.isReplicated()) memory.wholeParameters += bytes;
  }
  for (const Node& node : program.nodes) {
    if (node.kind == NodeKind::Constant) memory.constants += bytesOf(program, node.results[0]);
    if (node.kind == NodeKind::Input) memory.inputs += bytesOf(program, node.results[0]);
  }
  Liveness(program).run(memory);
  return memory;
}

}  // namespace cleave::plan
