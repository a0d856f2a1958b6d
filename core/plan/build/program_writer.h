#pragma once
/// Appends the nodes of a rank program: in the modules of the ATen graph, with unique names. One thread.
///
/// A program value has the name of the ATen value it holds. What comes before a collective is called "X.partial" (a sum
/// that is not complete), "X.reduced" (before the bias), or "X.part". The whole of a split value is "X.gathered". Where
/// a name is taken, a number follows.
///
///     ProgramWriter writer(aten);
///     const ValueId x = writer.addSource(aten, input, type);
///     const ValueId sum = writer.call(graph::kAllReduce, {x}, type, "linear_3", linear3);
///     CLEAVE_TRY(Graph program, std::move(writer).finish());
#include "graph/graph_builder.h"
#include "plan/plan.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace cleave::plan {

class ProgramWriter {
 public:
  /// `graph`: the ATen graph; it must outlive this object. Its names are taken.
  explicit ProgramWriter(const Graph& graph);
  /// The names of this graph's values are taken as well.
  void reserveNames(const Graph& named);

  const Graph& current() const { return m_builder.current(); }

  /// Appends an input, a parameter or a constant of `from` with its name.
  ValueId addSource(const Graph& from, NodeId id, graph::TensorType type);
  /// Appends a call with one result. `of`: the ATen value that the call completes or feeds; the call belongs to the
  /// module and origin of its producer. Only the first call of `of` gets the name of `of`.
  ValueId call(std::string_view op, std::vector<graph::Argument> args, graph::TensorType type, const std::string& name,
               ValueId of);
  /// Appends a call in the module of this node of `from`, whose results have that node's names.
  std::vector<ValueId> copy(const Graph& from, NodeId id, std::string_view op, std::vector<graph::Argument> args,
                            std::vector<graph::TensorType> types, NodeId origin, ValueId completes = {});
  /// Renames a value that has the name of `of`. The next call of `of` may have that name.
  void passNameOn(ValueId value, const std::string& name, ValueId of);
  void addOutput(const std::string& name, ValueId value) { m_builder.addOutput(name, value); }

  /// By node: see Lowered::completes.
  std::vector<ValueId> completes() const;
  /// Adds the tied and frozen names of the ATen graph, and verifies the program.
  Result<Graph> finish() &&;

 private:
  std::string unique(const std::string& name, ValueId of);
  graph::ScopeId scopeOf(const Graph& from, NodeId id);

  const Graph& m_graph;
  graph::GraphBuilder m_builder;
  std::vector<ValueId> m_completes;  ///< by node; may be shorter than the program
  std::unordered_set<std::string> m_taken;
  std::unordered_set<ValueId> m_named;  ///< ATen values whose name a call has
};

}  // namespace cleave::plan
