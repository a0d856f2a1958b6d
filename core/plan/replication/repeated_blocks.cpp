#include "plan/replication/repeated_blocks.h"

#include "graph/blocks.h"
#include "solve/problem/structure.h"

#include <algorithm>
#include <unordered_map>

namespace cleave::plan {

using graph::NodeId;
using graph::ValueId;

RepeatedBlocks::RepeatedBlocks(const graph::Graph& graph, const solve::Variables& variables)
    : m_graph(graph),
      m_variables(variables),
      m_blocks(1),
      m_blockOf(graph.nodes.size(), 0),
      m_placeOf(graph.nodes.size(), 0) {
  std::unordered_map<std::string, std::uint32_t> known{{"", 0}};
  std::vector<std::uint32_t> ofScope;
  for (const graph::Scope& scope : graph.scopes) {
    const auto [entry, isNew] =
        known.try_emplace(graph::blockPath(scope.path), static_cast<std::uint32_t>(m_blocks.size()));
    if (isNew) m_blocks.emplace_back();
    ofScope.push_back(entry->second);
  }
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (graph.node(node).kind != graph::NodeKind::Call) continue;
    Block& block = m_blocks[m_blockOf[node.index()] = ofScope[graph.node(node).scope.index()]];
    m_placeOf[node.index()] = static_cast<std::uint32_t>(block.calls.size());
    block.calls.push_back(node);
  }
  std::unordered_map<std::size_t, std::vector<std::size_t>> firstOf;
  for (std::size_t i = 1; i < m_blocks.size(); ++i) {
    auto& firsts = firstOf[hashOf(m_blocks[i])];
    const auto like = std::find_if(firsts.begin(), firsts.end(),
                                   [&](std::size_t first) { return areEqual(m_blocks[first], m_blocks[i]); });
    m_blocks[i].first = like == firsts.end() ? firsts.emplace_back(i) : *like;
  }
}

bool RepeatedBlocks::isOwn(ValueId value, NodeId reader) const {
  const NodeId producer = m_graph.value(value).producer;
  return m_graph.node(producer).kind == graph::NodeKind::Call &&
         m_blockOf[producer.index()] == m_blockOf[reader.index()];
}

std::size_t RepeatedBlocks::hashOf(const Block& block) const {
  std::size_t hash = block.calls.size();
  for (const NodeId node : block.calls) hash = hash * 31 + solve::structureHash(m_graph, m_variables, node);
  return hash;
}

bool RepeatedBlocks::areEqual(const Block& a, const Block& b) const {
  const auto placeOf = [&](ValueId value) {
    const graph::Value& of = m_graph.value(value);
    return std::pair(m_placeOf[of.producer.index()], of.resultIndex);
  };
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(), [&](NodeId x, NodeId y) {
    if (!solve::sameStructure(m_graph, m_variables, x, y)) return false;
    const auto ofX = graph::operandsOf(m_graph.node(x)), ofY = graph::operandsOf(m_graph.node(y));
    return std::equal(ofX.begin(), ofX.end(), ofY.begin(), ofY.end(), [&](ValueId p, ValueId q) {
      return isOwn(p, x) == isOwn(q, y) && (!isOwn(p, x) || placeOf(p) == placeOf(q));
    });
  });
}

RepeatedBlocks::Stand RepeatedBlocks::standOf(NodeId node) const {
  const std::size_t own = m_blockOf[node.index()], first = m_blocks[own].first;
  return {m_blocks[first].calls[m_placeOf[node.index()]], first, own};
}

std::vector<std::string> RepeatedBlocks::valuesOf(std::size_t block) const {
  std::vector<std::string> names;
  std::vector<bool> isTaken(m_graph.values.size(), false);
  const auto take = [&](ValueId value) {
    const bool isMade = m_graph.node(m_graph.value(value).producer).kind == graph::NodeKind::Call;
    if (!isMade || isTaken[value.index()]) return;
    isTaken[value.index()] = true;
    names.push_back(m_graph.value(value).name);
  };
  const auto addAllOf = [&](NodeId id) {
    graph::forEachOperand(m_graph.node(id), take);
    for (const ValueId result : m_graph.node(id).results) take(result);
  };
  for (const NodeId id : m_blocks[block].calls) {
    addAllOf(id);
    // Rotary tables and masks: what is cut for one block is cut for all.
    graph::forEachOperand(m_graph.node(id), [&](ValueId operand) {
      if (m_blockOf[m_graph.value(operand).producer.index()] != 0 || block == 0) return;
      for (const NodeId reader : m_graph.value(operand).users) addAllOf(reader);
    });
  }
  return names;
}

}  // namespace cleave::plan
