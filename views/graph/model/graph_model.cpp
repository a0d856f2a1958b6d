#include "views/graph/model/graph_model.h"

#include <algorithm>

namespace cleave::views {

std::string_view shortOpName(std::string_view op) {
  if (const auto colons = op.find("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
  return op.substr(0, op.find('.'));
}

ModuleId GraphModel::moduleOf(NodeId node) const {
  const NodeId shown = m_shownNode[node.index()];
  return shown.isValid() ? m_nodeModule[shown.index()] : ModuleId();
}

std::optional<NodeId> GraphModel::inlinedNode(ScopeId scope) const {
  const NodeId node = m_inlined[scope.index()];
  return node.isValid() ? std::optional(node) : std::nullopt;
}

bool GraphModel::isAncestor(ModuleId ancestor, ModuleId descendant) const {
  while (descendant.isValid() && module(descendant).depth > module(ancestor).depth)
    descendant = module(descendant).parent;
  return descendant == ancestor;
}

std::vector<ModuleId> GraphModel::pathTo(ModuleId id) const {
  std::vector<ModuleId> path;
  for (; id.isValid() && id != root(); id = module(id).parent) path.push_back(id);
  std::reverse(path.begin(), path.end());
  return path;
}

bool GraphModel::continuesStack(ModuleId before, ModuleId next) const {
  const Module &a = module(before), &b = module(next);
  return a.listIndex >= 0 && a.listName == b.listName && a.listIndex + 1 == b.listIndex &&
         m_tree->isEqual(a.scope, b.scope);
}

}  // namespace cleave::views
