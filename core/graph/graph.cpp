#include "graph/graph.h"

#include "base/checked.h"
#include "base/femtoseconds.h"
#include "base/quantities.h"
#include "graph/operators.h"
#include "graph/type_text.h"

#include <unordered_set>

namespace cleave::graph {
namespace {

void fillUsers(Graph& graph) {
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) {
    forEachOperand(graph.node(id), [&](ValueId operand) {
      if (operand.index() >= graph.values.size()) return;  // verify names it
      auto& users = graph.values[operand.index()].users;
      if (users.empty() || users.back() != id) users.push_back(id);
    });
  }
}

}  // namespace

std::int64_t Graph::heldBytes(ValueId id, std::int64_t count) const {
  const Value& held = value(id);
  const auto packed = packedBytes.empty() ? packedBytes.end() : packedBytes.find(held.name);
  if (packed == packedBytes.end()) return count * itemSize(held.type.dtype);
  const std::int64_t whole = elementCount(held.type.shape);
  if (whole == 0) return 0;
  return static_cast<std::int64_t>((Wide{packed->second} * count + whole - 1) / whole);
}

std::int64_t Graph::heldBytes(ValueId id) const { return heldBytes(id, elementCount(shapeOf(id))); }

const std::string& Graph::opName(const Node& n) const {
  static const std::string kNone;
  return n.kind == NodeKind::Call ? ops[n.op.index()] : kNone;
}

const std::string& Graph::sourceOf(const Node& n) const {
  static const std::string kNone;
  return n.source.isValid() ? sources[n.source.index()] : kNone;
}

ValueId Graph::findValue(std::string_view wanted) const {
  for (ValueId id : idRange<ValueId>(values.size())) {
    if (value(id).name == wanted) return id;
  }
  return {};
}

ScopeId Graph::findScope(std::string_view path) const {
  for (ScopeId id : idRange<ScopeId>(scopes.size())) {
    if (scope(id).path == path) return id;
  }
  return {};
}

std::vector<ValueId> operandsOf(const Node& node) {
  std::vector<ValueId> operands;
  forEachOperand(node, [&](ValueId value) { operands.push_back(value); });
  return operands;
}

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

namespace {

Result<void> verifyType(const Value& value) {
  if (value.type.shape.size() > kMaxDimensions) {
    return fail(ErrorCode::BadInput, "Value {} has {} dimensions; at most {} are accepted.", value.name,
                value.type.shape.size(), kMaxDimensions);
  }
  const auto count = checkedProduct(value.type.shape);
  if (!count || !checkedMul(*count, itemSize(value.type.dtype))) {
    return fail(ErrorCode::BadInput, "Value {} has shape {}: a size is negative or the tensor exceeds 2^63 bytes.",
                value.name, toText(value.type.shape));
  }
  return {};
}

Result<void> verifyScopes(const Graph& graph) {
  if (graph.scopes.empty()) return fail(ErrorCode::BadInput, "The graph has no root scope.");
  for (ScopeId id : idRange<ScopeId>(graph.scopes.size())) {
    const ScopeId parent = graph.scope(id).parent;
    const bool isRoot = id.index() == 0;
    if (isRoot == parent.isValid() || (!isRoot && parent >= id)) {
      return fail(ErrorCode::BadInput, "Scope {} \"{}\" has parent {}: parents must come before their children.",
                  id.index(), graph.scope(id).path, parent.raw());
    }
  }
  return {};
}

std::string nodeLabel(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::string op =
      node.kind == NodeKind::Call && node.op.index() < graph.ops.size() ? graph.ops[node.op.index()] : "source";
  return fmt::format("Node {} ({})", id.index(), op);
}

Result<void> verifyPacked(const Graph& graph) {
  std::size_t found = 0;
  for (const Node& node : graph.nodes) {
    if (graph.packedBytes.empty()) return {};
    if (node.kind != NodeKind::Parameter) continue;
    const Value& value = graph.value(node.results[0]);
    const auto packed = graph.packedBytes.find(value.name);
    if (packed == graph.packedBytes.end()) continue;
    ++found;
    if (packed->second >= 0 && packed->second <= mostPackedBytes(value.type)) continue;
    return fail(ErrorCode::BadInput, "{} is {} and is said to be stored in {} bytes: more than Cleave believes.",
                value.name, toText(value.type), packed->second);
  }
  if (found == graph.packedBytes.size()) return {};
  return fail(ErrorCode::BadInput, "The graph has packed bytes of {} parameters, of which it has {}.",
              graph.packedBytes.size(), found);
}

Result<void> verifyFrozen(const Graph& graph) {
  std::size_t found = 0;
  for (const Node& node : graph.nodes) {
    if (graph.frozen.empty()) return {};
    found += node.kind == NodeKind::Parameter && graph.frozen.contains(graph.value(node.results[0]).name);
  }
  if (found == graph.frozen.size()) return {};
  return fail(ErrorCode::BadInput, "The graph freezes {} parameters, of which it has {}.", graph.frozen.size(), found);
}

Result<void> verifyNode(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind == NodeKind::Call) {
    if (node.op.index() >= graph.ops.size()) return fail(ErrorCode::BadInput, "Node {} has no operator.", id.index());
  } else if (node.results.size() != 1 || !node.args.empty()) {
    return fail(ErrorCode::BadInput, "{} must have one result and no arguments.", nodeLabel(graph, id));
  }
  if (node.scope.index() >= graph.scopes.size()) {
    return fail(ErrorCode::BadInput, "{} has scope {}, but there are {}.", nodeLabel(graph, id), node.scope.raw(),
                graph.scopes.size());
  }
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const ValueId result = node.results[i];
    if (result.index() >= graph.values.size() || graph.value(result).producer != id ||
        graph.value(result).resultIndex != i) {
      return fail(ErrorCode::BadInput, "{}: result {} does not belong to it.", nodeLabel(graph, id), i);
    }
  }
  std::optional<ValueId> wrong;
  forEachOperand(node, [&](ValueId operand) {
    const bool known = operand.index() < graph.values.size();
    if (!known || graph.value(operand).producer >= id) wrong = operand;
  });
  if (wrong) {
    return fail(ErrorCode::BadInput,
                "{} reads value {}, which is not produced before it: the graph has a cycle or a wrong id.",
                nodeLabel(graph, id), wrong->raw());
  }
  if (node.kind == NodeKind::Constant) {
    const Value& value = graph.value(node.results[0]);
    const auto data = graph.constants.find(id.raw());
    if (data != graph.constants.end() && static_cast<std::int64_t>(data->second.size()) != sizeInBytes(value.type)) {
      return fail(ErrorCode::BadInput, "Constant {} has {} of data, but its type {} needs {}.", value.name,
                  counted(std::ssize(data->second), "byte"), toText(value.type), sizeInBytes(value.type));
    }
  }
  return {};
}

}  // namespace

std::int64_t mostPackedBytes(const TensorType& type) {
  constexpr std::int64_t kOverhead = 64 << 10;
  return saturatingAdd(saturatingMul(sizeInBytes(type), 2), kOverhead);
}

Result<void> verify(const Graph& graph) {
  if (graph.nodes.size() > kMaxNodes) {
    return fail(ErrorCode::BadInput, "The graph has {} nodes; at most {} are accepted.", graph.nodes.size(), kMaxNodes);
  }
  CLEAVE_TRY_VOID(verifyScopes(graph));
  std::unordered_set<std::string_view> names;
  names.reserve(graph.values.size());
  for (const Value& value : graph.values) {
    CLEAVE_TRY_VOID(verifyType(value));
    if (value.name.empty()) return fail(ErrorCode::BadInput, "A value of the graph has no name.");
    if (!names.insert(value.name).second) return fail(ErrorCode::BadInput, "Two values are called {}.", value.name);
    if (value.producer.index() >= graph.nodes.size())
      return fail(ErrorCode::BadInput, "Value {} has no producer.", value.name);
  }
  std::size_t resultCount = 0;
  for (NodeId id : idRange<NodeId>(graph.nodes.size())) {
    CLEAVE_TRY_VOID(verifyNode(graph, id));
    resultCount += graph.node(id).results.size();
  }
  if (resultCount != graph.values.size()) {
    return fail(ErrorCode::BadInput, "The graph has {}, but its nodes produce {}.",
                counted(std::ssize(graph.values), "value"), resultCount);
  }
  for (const Output& output : graph.outputs) {
    if (output.value.index() >= graph.values.size())
      return fail(ErrorCode::BadInput, "Output {} names no value.", output.name);
  }
  CLEAVE_TRY_VOID(verifyFrozen(graph));
  return verifyPacked(graph);
}

}  // namespace cleave::graph
