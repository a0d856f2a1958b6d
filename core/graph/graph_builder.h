#pragma once
/// Builds a graph in topological order and makes its names unique. Not thread-safe.
///
///     GraphBuilder b;
///     ValueId x = b.addInput("x", {DType::Float32, {2, 8}});
///     ValueId w = b.addParameter("fc.weight", {DType::Float32, {16, 8}});
///     ValueId y = b.addCall("aten::linear", {x, w, Argument{}}, {{DType::Float32, {2, 16}}}, b.scope("fc"))[0];
///     b.addOutput("y", y);
///     CLEAVE_TRY(Graph g, std::move(b).finish());
#include "graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cleave::graph {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string graphName = {});
  ValueId addInput(const std::string& name, TensorType type, NodeId origin = NodeId());
  ValueId addParameter(const std::string& name, TensorType type, ScopeId scope = ScopeId(0), NodeId origin = NodeId());
  ValueId addConstant(const std::string& name, TensorType type, std::vector<std::byte> data, ScopeId scope = ScopeId(0),
                      NodeId origin = NodeId());
  /// Appends a call; results are named "<op>_<n>" (operator without namespace and overload, n counted per operator).
  std::vector<ValueId> addCall(std::string_view op, std::vector<Argument> args, std::vector<TensorType> results,
                               ScopeId scope = ScopeId(0), NodeId origin = NodeId());
  void addOutput(const std::string& name, ValueId value);
  void addTiedName(const std::string& parameter, const std::string& otherName);
  void setStackedName(const std::string& parameter, const StackedName& stored);
  void setPackedBytes(const std::string& parameter, std::int64_t bytes);
  /// Marks a parameter that training does not change.
  void freeze(const std::string& parameter) { m_graph.frozen.insert(parameter); }
  void renameValue(ValueId value, const std::string& name);
  /// Sets the source line of all calls added from now on; empty if unknown.
  void setSource(const std::string& line);
  /// The scope of a dotted path. Creates it with its ancestors if it is new.
  ScopeId scope(std::string_view path, std::string_view className = {});
  const Graph& current() const { return m_graph; }
  /// Fills `users`, verifies the graph and returns it. BadInput names the first invalid item.
  Result<Graph> finish() &&;

 private:
  ValueId addSource(NodeKind kind, const std::string& name, TensorType type, ScopeId scope, NodeId origin);
  ValueId addValue(std::string name, TensorType type, NodeId producer, std::uint32_t resultIndex);
  Graph m_graph;
  std::unordered_map<std::string, std::uint32_t> m_opIndex;
  std::unordered_map<std::string, std::uint32_t> m_scopeIndex;
  std::unordered_map<std::string, std::uint32_t> m_nameCount;
  std::unordered_map<std::string, std::uint32_t> m_takenNames;
  std::unordered_map<std::string, std::uint32_t> m_sourceIndex;
  SourceId m_source;
};

}  // namespace cleave::graph
