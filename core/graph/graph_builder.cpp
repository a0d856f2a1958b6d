#include "graph/graph_builder.h"

#include "graph/op_names.h"
#include "graph/verify.h"

#include <utility>

namespace cleave::graph {

GraphBuilder::GraphBuilder(std::string graphName) {
  m_graph.name = std::move(graphName);
  m_graph.scopes.push_back({});
  m_scopeIndex.emplace("", 0);
}

ValueId GraphBuilder::addValue(std::string name, TensorType type, NodeId producer, std::uint32_t resultIndex) {
  const ValueId id(m_graph.values.size());
  if (!m_takenNames.emplace(name, id.raw()).second) {
    for (int suffix = 1;; ++suffix) {
      std::string candidate = fmt::format("{}_{}", name, suffix);
      if (m_takenNames.emplace(candidate, id.raw()).second) {
        name = std::move(candidate);
        break;
      }
    }
  }
  m_graph.values.push_back({std::move(name), std::move(type), producer, resultIndex, {}});
  return id;
}

ValueId GraphBuilder::addSource(NodeKind kind, const std::string& name, TensorType type, ScopeId scope, NodeId origin) {
  const NodeId id(m_graph.nodes.size());
  Node node;
  node.kind = kind;
  node.scope = scope;
  node.origin = origin;
  node.results.push_back(addValue(name, std::move(type), id, 0));
  m_graph.nodes.push_back(std::move(node));
  return m_graph.nodes.back().results[0];
}

ValueId GraphBuilder::addInput(const std::string& name, TensorType type, NodeId origin) {
  return addSource(NodeKind::Input, name, std::move(type), ScopeId(0), origin);
}

ValueId GraphBuilder::addParameter(const std::string& name, TensorType type, ScopeId scope, NodeId origin) {
  return addSource(NodeKind::Parameter, name, std::move(type), scope, origin);
}

ValueId GraphBuilder::addConstant(const std::string& name, TensorType type, std::vector<std::byte> data, ScopeId scope,
                                  NodeId origin) {
  const ValueId value = addSource(NodeKind::Constant, name, std::move(type), scope, origin);
  m_graph.constants.emplace(m_graph.value(value).producer.raw(), std::move(data));
  return value;
}

std::vector<ValueId> GraphBuilder::addCall(std::string_view op, std::vector<Argument> args,
                                           std::vector<TensorType> results, ScopeId scope, NodeId origin) {
  const NodeId id(m_graph.nodes.size());
  const auto [entry, isNew] = m_opIndex.emplace(std::string(op), static_cast<std::uint32_t>(m_graph.ops.size()));
  if (isNew) m_graph.ops.emplace_back(op);
  Node node;
  node.op = OpId(entry->second);
  node.args = std::move(args);
  node.scope = scope;
  node.origin = origin;
  node.source = m_source;
  const std::string base(shortName(op));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = base + '_' + std::to_string(m_nameCount[base]++);
    node.results.push_back(addValue(name, std::move(results[i]), id, static_cast<std::uint32_t>(i)));
  }
  m_graph.nodes.push_back(std::move(node));
  return m_graph.nodes.back().results;
}

void GraphBuilder::addOutput(const std::string& name, ValueId value) { m_graph.outputs.push_back({name, value}); }

void GraphBuilder::addTiedName(const std::string& parameter, const std::string& otherName) {
  m_graph.tiedNames[parameter].push_back(otherName);
}

void GraphBuilder::setStackedName(const std::string& parameter, const StackedName& stored) {
  m_graph.stackedNames[parameter] = stored;
}

void GraphBuilder::setPackedBytes(const std::string& parameter, std::int64_t bytes) {
  m_graph.packedBytes[parameter] = bytes;
}

void GraphBuilder::renameValue(ValueId value, const std::string& name) {
  Value& renamed = m_graph.values[value.index()];
  if (renamed.name == name) return;
  m_takenNames.erase(renamed.name);
  m_takenNames[name] = value.raw();
  renamed.name = name;
}

void GraphBuilder::setSource(const std::string& line) {
  m_source = SourceId();
  if (line.empty()) return;
  const auto [entry, isNew] = m_sourceIndex.emplace(line, static_cast<std::uint32_t>(m_graph.sources.size()));
  if (isNew) m_graph.sources.push_back(line);
  m_source = SourceId(entry->second);
}

ScopeId GraphBuilder::scope(std::string_view path, std::string_view className) {
  if (const auto found = m_scopeIndex.find(std::string(path)); found != m_scopeIndex.end()) {
    Scope& known = m_graph.scopes[found->second];
    if (known.className.empty()) known.className = className;
    return ScopeId(found->second);
  }
  const auto dot = path.rfind('.');
  const ScopeId parent = scope(dot == std::string_view::npos ? std::string_view() : path.substr(0, dot));
  const ScopeId id(m_graph.scopes.size());
  m_graph.scopes.push_back({std::string(path), parent, std::string(className)});
  m_scopeIndex.emplace(std::string(path), id.raw());
  return id;
}

Result<Graph> GraphBuilder::finish() && {
  fillUsers(m_graph);
  CLEAVE_TRY_VOID(verify(m_graph));
  return std::move(m_graph);
}

}  // namespace cleave::graph
