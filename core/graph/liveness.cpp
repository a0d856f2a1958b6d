#include "graph/liveness.h"

#include "graph/arguments.h"
#include "graph/operators.h"

#include <algorithm>

namespace cleave::graph {
namespace {

constexpr std::uint32_t kForever = 0xffffffffu;

}  // namespace

Lifetimes::Lifetimes(const Graph& graph, std::string_view inPlaceOp)
    : m_graph(graph), m_owner(graph.values.size()), m_ownsMemory(graph.values.size(), false) {
  m_lastUse = findOwners();
  if (!inPlaceOp.empty()) {
    m_takesOver.resize(graph.nodes.size());
    for (NodeId id : idRange<NodeId>(graph.nodes.size()))
      m_takesOver[id.index()] = graph.opName(graph.node(id)) == inPlaceOp;
  }
  findDying(m_lastUse);
}

std::vector<std::uint32_t> Lifetimes::findOwners() {
  std::vector<std::uint32_t> lastUse(m_graph.values.size(), 0);
  std::vector<bool> isView;
  for (const std::string& op : m_graph.ops) isView.push_back(graph::isView(op));
  for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
    const Node& node = m_graph.node(id);
    forEachOperand(node, [&](ValueId operand) { lastUse[ownerOf(operand).index()] = id.raw(); });
    const ValueId base = operandAt(node, 0);
    const bool sharesMemory = base.isValid() && node.kind == NodeKind::Call && isView[node.op.index()];
    for (ValueId result : node.results) {
      m_owner[result.index()] = sharesMemory ? ownerOf(base) : result;
      m_ownsMemory[result.index()] = node.kind == NodeKind::Call && ownerOf(result) == result;
      lastUse[ownerOf(result).index()] = id.raw();
    }
  }
  return lastUse;
}

void Lifetimes::findDying(std::vector<std::uint32_t> lastUse) {
  for (const Output& output : m_graph.outputs) lastUse[ownerOf(output.value).index()] = kForever;

  m_dyingBegin.assign(m_graph.nodes.size() + 1, 0);
  const auto forEachDying = [&](const auto& visit) {
    for (ValueId value : idRange<ValueId>(m_graph.values.size())) {
      if (ownsMemory(value) && lastUse[value.index()] != kForever) visit(value, lastUse[value.index()]);
    }
  };
  forEachDying([&](ValueId, std::uint32_t node) { ++m_dyingBegin[node + 1]; });
  for (std::size_t i = 1; i < m_dyingBegin.size(); ++i) m_dyingBegin[i] += m_dyingBegin[i - 1];
  m_dying.resize(m_dyingBegin.back());
  std::vector<std::uint32_t> next = m_dyingBegin;
  forEachDying([&](ValueId value, std::uint32_t node) { m_dying[next[node]++] = value; });

  for (NodeId id : idRange<NodeId>(m_takesOver.size())) {
    if (!m_takesOver[id.index()]) continue;
    const ValueId operand = ownerOf(std::get<ValueId>(m_graph.node(id).args[0]));
    m_takesOver[id.index()] = ownsMemory(operand) && lastUse[operand.index()] == id.raw();
  }
}

MemoryUse Lifetimes::run(std::span<const std::int64_t> bytes, std::span<const std::int64_t> workspace) const {
  MemoryUse use;
  std::int64_t live = 0;
  use.liveAfter.reserve(m_graph.nodes.size());
  for (NodeId id : idRange<NodeId>(m_graph.nodes.size())) {
    const Node& node = m_graph.node(id);
    if (node.kind == NodeKind::Call) {
      // The memory that an operator reuses is counted already. It lives on as the result.
      const std::int64_t takenOver = takesOver(id) ? bytes[node.results[0].index()] : 0;
      for (ValueId result : node.results) live += ownsMemory(result) ? bytes[result.index()] : 0;
      live -= takenOver;
      const std::int64_t buffers = workspace[id.index()];
      if (live + buffers > use.peak || !use.peakNode.isValid()) {
        use.peak = live + buffers;
        use.workspaceAtPeak = buffers;
        use.peakNode = id;
      }
      live += takenOver;
      for (std::uint32_t i = m_dyingBegin[id.index()]; i < m_dyingBegin[id.index() + 1]; ++i)
        live -= bytes[m_dying[i].index()];
    }
    use.liveAfter.push_back(live);
  }
  return use;
}

}  // namespace cleave::graph
