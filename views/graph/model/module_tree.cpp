#include "views/graph/model/module_tree.h"

#include "views/graph/model/module_path.h"
#include "views/graph/model/module_structure.h"

namespace cleave::views {

namespace {
constexpr std::size_t kStackFrom = 3;
}

class ModuleTreeBuilder {
 public:
  explicit ModuleTreeBuilder(ModuleTree& tree) : m_tree(tree) {}

  void build() {
    const graph::Graph& graph = *m_tree.m_graph;
    m_tree.m_below.resize(graph.scopes.size());
    for (const ScopeId scope : idRange<ScopeId>(graph.scopes.size()))
      if (const ScopeId parent = graph.scope(scope).parent; parent.isValid())
        m_tree.m_below[parent.index()].push_back(scope);
    m_tree.m_structure = structuresOf(graph, m_tree.m_below);
    m_tree.m_itemOfScope.resize(graph.scopes.size());
    const TreeItemId root = addItem(TreeItemId(), graph.scopes.empty() ? ScopeId() : ScopeId(0));
    if (!graph.scopes.empty()) m_tree.m_itemOfScope[0] = root;
    for (std::size_t i = 0; i < m_tree.m_items.size(); ++i)
      if (const TreeItem& item = m_tree.m_items[i]; item.stackSize == 0 && item.scope.isValid())
        addBelow(TreeItemId(i), m_tree.m_below[item.scope.index()]);
    countOperators();
  }

 private:
  TreeItemId addItem(TreeItemId parent, ScopeId scope) {
    const TreeItemId id(m_tree.m_items.size());
    TreeItem item;
    item.scope = scope;
    item.parent = parent;
    if (parent.isValid()) {
      auto& siblings = m_tree.m_items[parent.index()].children;
      item.row = static_cast<std::uint32_t>(siblings.size());
      siblings.push_back(id);
    }
    m_tree.m_items.push_back(std::move(item));
    return id;
  }

  void addBelow(TreeItemId parent, const std::vector<ScopeId>& scopes) {
    for (std::size_t from = 0; from < scopes.size();) {
      std::size_t to = from + 1;
      while (to < scopes.size() && isNext(scopes[to - 1], scopes[to])) ++to;
      TreeItemId home = parent;
      if (to - from >= kStackFrom) {
        home = addItem(parent, scopes[from]);
        m_tree.m_items[home.index()].stackSize = static_cast<std::uint32_t>(to - from);
      }
      for (; from < to; ++from) m_tree.m_itemOfScope[scopes[from].index()] = addItem(home, scopes[from]);
    }
  }

  bool isNext(ScopeId before, ScopeId scope) const {
    const auto indexOf = [&](ScopeId s) { return listIndexOf(lastPart(m_tree.graph().scope(s).path)); };
    return m_tree.isEqual(before, scope) && indexOf(before) + 1 == indexOf(scope);
  }

  void countOperators() {
    for (const graph::Node& node : m_tree.graph().nodes)
      if (node.kind == graph::NodeKind::Call) ++m_tree.m_items[m_tree.itemOf(node.scope).index()].operators;
    for (std::size_t i = m_tree.m_items.size(); i-- > 1;)
      m_tree.m_items[m_tree.m_items[i].parent.index()].operators += m_tree.m_items[i].operators;
  }

  ModuleTree& m_tree;
};

ModuleTree::ModuleTree(std::shared_ptr<const graph::Graph> graph) : m_graph(std::move(graph)) {
  ModuleTreeBuilder(*this).build();
}

TreeItemId ModuleTree::itemOf(ScopeId scope) const {
  return scope.isValid() && scope.index() < m_itemOfScope.size() ? m_itemOfScope[scope.index()] : root();
}

TreeItemId ModuleTree::stackOf(ScopeId first, ScopeId last) const {
  const TreeItemId stack = item(itemOf(first)).parent;
  if (!stack.isValid() || item(stack).stackSize == 0) return {};
  const auto& children = item(stack).children;
  return item(children.front()).scope == first && item(children.back()).scope == last ? stack : TreeItemId();
}

bool ModuleTree::isEqual(ScopeId a, ScopeId b) const {
  return m_structure[a.index()] != kNoStructure && m_structure[a.index()] == m_structure[b.index()];
}

}  // namespace cleave::views
