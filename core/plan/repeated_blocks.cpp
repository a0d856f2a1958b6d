#include "plan/repeated_blocks.h"

#include "solve/problem/wording.h"

#include <algorithm>
#include <unordered_map>

namespace cleave::plan {
namespace {

using graph::NodeId;
using graph::ValueId;

/// "model.layers.3" of "model.layers.3.mlp.up_proj"; empty: it is in no list of modules.
std::string blockPath(const std::string& path) {
  const std::size_t index = solve::withoutIndices(path).find('*');  // as far as there the two are alike
  return index == std::string::npos ? std::string() : path.substr(0, path.find('.', index));
}

}  // namespace

RepeatedBlocks::RepeatedBlocks(const graph::Graph& graph)
    : m_graph(graph), m_blocks(1), m_blockOf(graph.nodes.size(), 0), m_placeOf(graph.nodes.size(), 0) {
  std::unordered_map<std::string, std::uint32_t> known{{"", 0}};
  std::vector<std::uint32_t> ofScope;
  for (const graph::Scope& scope : graph.scopes) {
    const auto [entry, isNew] = known.try_emplace(blockPath(scope.path), static_cast<std::uint32_t>(m_blocks.size()));
    if (isNew) m_blocks.emplace_back();
    ofScope.push_back(entry->second);
  }
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    if (graph.node(node).kind != graph::NodeKind::Call) continue;
    Block& block = m_blocks[m_blockOf[node.index()] = ofScope[graph.node(node).scope.index()]];
    m_placeOf[node.index()] = static_cast<std::uint32_t>(block.calls.size());
    block.calls.push_back(node);
  }
  std::unordered_map<std::string, std::size_t> firstOf;
  for (std::size_t i = 0; i < m_blocks.size(); ++i)
    m_blocks[i].first = i == 0 ? 0 : firstOf.try_emplace(textOf(m_blocks[i]), i).first->second;
}

/// What it computes, its own values by their places and others by their types.
std::string RepeatedBlocks::textOf(const Block& block) const {
  std::string text;
  for (const NodeId id : block.calls) {
    const graph::Node& node = m_graph.node(id);
    text += m_graph.opName(node);
    for (const graph::Argument& argument : node.args) {
      if (const auto* value = std::get_if<ValueId>(&argument); value && value->isValid()) {
        const NodeId producer = m_graph.value(*value).producer;
        const bool isOwn = m_blockOf[producer.index()] == m_blockOf[id.index()] &&
                           m_graph.node(producer).kind == graph::NodeKind::Call;
        text += isOwn ? " v" + std::to_string(m_placeOf[producer.index()])
                      : " x" + graph::toText(m_graph.value(*value).type);
      } else if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&argument)) {
        text += graph::toText(*numbers);
      } else if (const auto* number = std::get_if<std::int64_t>(&argument)) {
        text += ' ' + std::to_string(*number);
      }
    }
    for (const ValueId result : node.results) text += " > " + graph::toText(m_graph.value(result).type);
    text += '\n';
  }
  return text;
}

RepeatedBlocks::Stand RepeatedBlocks::standOf(NodeId node) const {
  const std::size_t first = m_blocks[m_blockOf[node.index()]].first;
  return {m_blocks[first].calls[m_placeOf[node.index()]], first};
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
  const auto takeAllOf = [&](NodeId id) {
    graph::forEachOperand(m_graph.node(id), take);
    for (const ValueId result : m_graph.node(id).results) take(result);
  };
  for (const NodeId id : m_blocks[block].calls) {
    takeAllOf(id);
    // Rotary tables and masks: what is cut for one block is cut for all.
    graph::forEachOperand(m_graph.node(id), [&](ValueId operand) {
      if (m_blockOf[m_graph.value(operand).producer.index()] != 0 || block == 0) return;
      for (const NodeId reader : m_graph.value(operand).users) takeAllOf(reader);
    });
  }
  return names;
}

}  // namespace cleave::plan
