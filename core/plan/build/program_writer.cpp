#include "plan/build/program_writer.h"

namespace cleave::plan {

using graph::Argument;
using graph::Node;
using graph::NodeKind;
using graph::TensorType;

ProgramWriter::ProgramWriter(const Graph& graph) : m_graph(graph), m_builder(graph.name) {
  reserveNames(graph);
  for (const graph::Scope& scope : graph.scopes) m_builder.scope(scope.path, scope.className);
}

void ProgramWriter::reserveNames(const Graph& named) {
  for (const graph::Value& value : named.values) m_taken.insert(value.name);
}

graph::ScopeId ProgramWriter::scopeOf(const Graph& from, NodeId id) {
  return m_builder.scope(from.scope(from.node(id).scope).path);
}

/// A name that neither the ATen graph nor the program has yet; an ATen value's own name is kept for it.
std::string ProgramWriter::unique(const std::string& name, ValueId of) {
  if (name == m_graph.value(of).name && m_named.insert(of).second) return name;
  std::string candidate = name;
  for (int n = 2; !m_taken.insert(candidate).second; ++n) candidate = fmt::format("{}{}", name, n);
  return candidate;
}

ValueId ProgramWriter::addSource(const Graph& from, NodeId id, TensorType type) {
  const std::string& name = from.value(from.node(id).results[0]).name;
  switch (from.node(id).kind) {
    case NodeKind::Input: return m_builder.addInput(name, std::move(type));
    case NodeKind::Parameter: return m_builder.addParameter(name, std::move(type), scopeOf(from, id));
    case NodeKind::Constant: {
      const auto data = from.constants.find(id.raw());
      CLEAVE_CHECK(data != from.constants.end(), "constant {} has no data", name);
      return m_builder.addConstant(name, std::move(type), data->second, scopeOf(from, id));
    }
    case NodeKind::Call: break;
  }
  CLEAVE_CHECK(false, "{} is a call", name);
  return {};
}

ValueId ProgramWriter::call(std::string_view op, std::vector<Argument> args, TensorType type, const std::string& name,
                            ValueId of) {
  const NodeId origin = m_graph.value(of).producer;
  const ValueId result =
      m_builder.addCall(op, std::move(args), {std::move(type)}, scopeOf(m_graph, origin), origin).front();
  m_builder.renameValue(result, unique(name, of));
  m_completes.resize(current().nodes.size());
  m_completes.back() = of;
  return result;
}

std::vector<ValueId> ProgramWriter::copy(const Graph& from, NodeId id, std::string_view op, std::vector<Argument> args,
                                         std::vector<TensorType> types, NodeId origin, ValueId completes) {
  auto results = m_builder.addCall(op, std::move(args), std::move(types), scopeOf(from, id), origin);
  for (std::size_t i = 0; i < results.size(); ++i)
    m_builder.renameValue(results[i], from.value(from.node(id).results[i]).name);
  m_completes.resize(current().nodes.size());
  m_completes.back() = completes;
  return results;
}

void ProgramWriter::passNameOn(ValueId value, const std::string& name, ValueId of) {
  m_builder.renameValue(value, unique(name, of));
  m_named.erase(of);
}

std::vector<ValueId> ProgramWriter::completes() const {
  std::vector<ValueId> all = m_completes;
  all.resize(current().nodes.size());
  return all;
}

Result<Graph> ProgramWriter::finish() && {
  for (const auto& value : m_graph.values) {
    const auto tied = m_graph.tiedNames.find(value.name);
    if (tied == m_graph.tiedNames.end()) continue;
    for (const std::string& other : tied->second) m_builder.addTiedName(value.name, other);
  }
  for (const std::string& name : m_graph.frozen) m_builder.freeze(name);
  return std::move(m_builder).finish();
}

}  // namespace cleave::plan
