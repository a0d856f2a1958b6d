#pragma once
/// The modules of a model as one tree. The canvas, its legend, the modules tree and the tables count by its items.
///
/// A tree item is a module (a scope of the graph) or a *stack*: three or more equal neighbours of a numbered list
/// ("layers.0" to "layers.31"), placed between their parent and themselves. Two modules are *equal* if the same
/// operators read the same things in the same order. The comparison covers names below the module, literal arguments,
/// types of all values read and made, and the wiring. A value that many neighbours read (cos, sin, a mask) must be the
/// same one; any other value must have the same type. Names of tensors and contents of weights do not count. Only
/// members of numbered lists are compared.
///
/// Immutable; any thread. One pass over the nodes, plus one pass for each numbered list around them.
///
///     const ModuleTree tree(graph);
///     for (TreeItemId id : tree.item(tree.root()).children) tree.item(id).operators;
#include <memory>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace cleave::views {

using graph::NodeId;
using graph::ScopeId;
using graph::ValueId;
using TreeItemId = Id<struct TreeItemTag>;

struct TreeItem {
  ScopeId scope;                     ///< a stack's first module; invalid only in a graph without scopes
  TreeItemId parent;                 ///< invalid for the root
  std::uint32_t row = 0;             ///< among the children of its parent
  std::uint32_t stackSize = 0;       ///< > 0: the number of modules in the stack
  std::uint32_t operators = 0;       ///< calls inside, at any depth
  std::vector<TreeItemId> children;  ///< in the order of their scopes
};

class ModuleTree {
 public:
  explicit ModuleTree(std::shared_ptr<const graph::Graph> graph);

  const graph::Graph& graph() const { return *m_graph; }

  TreeItemId root() const { return TreeItemId(0); }
  std::size_t size() const { return m_items.size(); }
  const TreeItem& item(TreeItemId id) const { return m_items[id.index()]; }
  /// The module's own item, never its stack. The root for a scope that is not in the graph.
  TreeItemId itemOf(ScopeId scope) const;
  /// The stack of exactly these modules. Invalid: no such stack.
  TreeItemId stackOf(ScopeId first, ScopeId last) const;
  std::uint32_t operatorsIn(ScopeId scope) const { return item(itemOf(scope)).operators; }
  /// Modules right below, in the order of their scopes.
  const std::vector<ScopeId>& below(ScopeId scope) const { return m_below[scope.index()]; }
  /// True if both are members of numbered lists and equal, as defined above.
  bool isEqual(ScopeId a, ScopeId b) const;

 private:
  friend class ModuleTreeBuilder;
  std::shared_ptr<const graph::Graph> m_graph;
  std::vector<TreeItem> m_items;  ///< parents before their children
  std::vector<TreeItemId> m_itemOfScope;
  std::vector<std::vector<ScopeId>> m_below;
  std::vector<std::uint32_t> m_structure;  ///< by scope; kNoStructure: not compared
};

}  // namespace cleave::views
