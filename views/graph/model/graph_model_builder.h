#pragma once
/// Makes a GraphModel. graph_model.h describes the decisions. One pass over nodes and edges.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "views/graph/model/graph_model.h"

namespace cleave::views {

struct GraphModelOptions {
  bool foldNoise = true;  ///< skip aliases and group helpers
};

GraphModel makeGraphModel(std::shared_ptr<const ModuleTree> tree, GraphModelOptions options = {});

/// The passes in their order. Private to `makeGraphModel`.
class GraphModelBuilder {
 public:
  GraphModelBuilder(std::shared_ptr<const ModuleTree> tree, GraphModelOptions options);
  GraphModel build() &&;

 private:
  // graph_model_builder.cpp: modules, members, edges
  void countOperators();
  void makeModules();
  bool openStacks(ScopeId wrapper, std::vector<struct PendingScope>& pending);
  bool isListOfModules(ScopeId scope) const;
  bool isOneOfAList(ScopeId scope) const;
  void openScope(ScopeId scope, ModuleId parent, const std::string& prefix, std::vector<struct PendingScope>& pending);
  ModuleId addModule(ModuleKind kind, ScopeId scope, ModuleId parent, std::string title);
  void placeNodes();
  void makeMembers();
  void makeEdges();
  void addEdge(NodeId from, NodeId to, int output, ValueId value);
  void collectHubs();
  bool isInside(ModuleId outer, NodeId node) const;

  // graph_model_fold.cpp: noise, hubs, helpers
  void findNoise();
  void findUnread();
  void findReaders();
  void findHubs();
  bool isSpreadOut(ValueId value) const;
  bool findFarHubs();
  void trim();
  void groupRotary();
  bool matchRotary(NodeId add, std::vector<NodeId>& found) const;
  bool traceHalves(NodeId from, ValueId whole, std::vector<NodeId>& found) const;
  void groupShared();

  const graph::Graph& g() const { return m_model.graph(); }
  bool isShownCall(NodeId node) const;
  std::string_view shortOp(NodeId node) const;
  NodeId producerOf(ValueId value) const { return g().value(value).producer; }

  GraphModel m_model;
  GraphModelOptions m_options;
  std::vector<std::uint32_t> m_scopeOperators;                   ///< shown operators at any depth, by scope
  std::vector<std::uint32_t> m_scopeDirect;                      ///< operators directly in the scope
  std::vector<std::vector<ScopeId>> m_scopeChildren;             ///< children with operators
  std::unordered_map<std::uint32_t, std::string> m_inlineTitle;  ///< by scope of a one-operator module
  std::vector<std::uint32_t> m_memberOfNode;                     ///< position in its module
  std::vector<std::uint32_t> m_memberOfModule;                   ///< position in its parent
};

}  // namespace cleave::views
