#include "views/graph/view/folds.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cleave::views {
namespace {

void openAncestors(const GraphModel& model, ModuleId module, FoldState& folds) {
  for (const ModuleId id : model.pathTo(module)) {
    folds.loose.insert(id);
    if (id != module) folds.open.insert(id);
  }
}

void openUpTo(const GraphModel& model, ModuleId module, FoldState& folds) {
  openAncestors(model, module, folds);
  if (module != model.root()) folds.open.insert(module);
}

void close(ModuleId module, FoldState& folds) {
  folds.open.erase(module);
  folds.loose.erase(module);  // back into its stack
}

/// All modules that came from inside the scope, outermost only.
std::vector<ModuleId> modulesIn(const GraphModel& model, ScopeId scope) {
  const graph::Graph& graph = model.graph();
  const std::string prefix = graph.scope(scope).path + ".";
  std::vector<ModuleId> modules;
  for (const ModuleId id : idRange<ModuleId>(model.moduleCount())) {
    const Module& module = model.module(id);
    if (module.scope.isValid() && graph.scope(module.scope).path.starts_with(prefix) &&
        module.parent == model.moduleOf(scope))
      modules.push_back(id);
  }
  return modules;
}

void unstack(const GraphModel& model, const SceneItem& stack, FoldState& folds) {
  bool isInside = false;
  for (const Member& member : model.module(model.module(stack.module).parent).members) {
    isInside |= member.module == stack.module;
    if (isInside && member.module.isValid()) folds.loose.insert(member.module);
    if (member.module == stack.lastModule) break;
  }
}

bool contains(const std::vector<ModuleId>& modules, ModuleId module) {
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

}  // namespace

bool Folds::isExpanded(const GraphModel& model, ScopeId scope) const {
  const ModuleId module = model.moduleOf(scope);
  return model.module(module).scope == scope && (module == model.root() || m_state.isOpen(module));
}

std::vector<ScopeId> Folds::expandedScopes(const GraphModel& model) const {
  std::vector<ScopeId> scopes;
  for (const ModuleId id : m_state.open)
    if (model.module(id).scope.isValid()) scopes.push_back(model.module(id).scope);
  std::sort(scopes.begin(), scopes.end());
  return scopes;
}

void Folds::collapseAll() {
  m_followed.clear();
  m_state = {};
}

void Folds::expandAll(const GraphModel& model) {
  collapseAll();
  for (const ModuleId id : idRange<ModuleId>(model.moduleCount())) {
    if (id == model.root()) continue;
    m_state.loose.insert(id);
    if (model.module(id).kind == ModuleKind::Scope) m_state.open.insert(id);
  }
}

void Folds::open(const GraphModel& model, const std::vector<ScopeId>& scopes) {
  collapseAll();
  for (const ScopeId scope : scopes) openUpTo(model, model.moduleOf(scope), m_state);
}

void Folds::expand(const GraphModel& model, ScopeId scope) {
  m_followed.clear();
  const ModuleId module = model.moduleOf(scope);
  openAncestors(model, module, m_state);
  if (model.module(module).scope == scope && module != model.root()) {
    m_state.open.insert(module);
  } else if (!model.inlinedNode(scope)) {  // a dissolved list
    const std::vector<ModuleId> members = modulesIn(model, scope);
    m_state.loose.insert(members.begin(), members.end());
  }
}

void Folds::collapse(const GraphModel& model, ScopeId scope) {
  m_followed.clear();
  const ModuleId module = model.moduleOf(scope);
  if (model.module(module).scope == scope) return close(module, m_state);
  for (const ModuleId id : modulesIn(model, scope)) close(id, m_state);
}

void Folds::toggle(const GraphModel& model, const SceneItem& box, bool asList) {
  m_followed.clear();
  if (box.kind == ItemKind::Stack && asList) return unstack(model, box, m_state);
  if (m_state.isOpen(box.module)) return close(box.module, m_state);
  m_state.loose.insert(box.module);
  m_state.open.insert(box.module);
}

bool Folds::reveal(const GraphModel& model, NodeId shown) {
  m_followed.clear();
  FoldState state = m_state;
  openUpTo(model, model.moduleOf(shown), state);
  return adopt(std::move(state));
}

bool Folds::reveal(const GraphModel& model, ModuleId module) {
  m_followed.clear();
  FoldState state = m_state;
  openAncestors(model, module, state);
  return adopt(std::move(state));
}

bool Folds::follow(const GraphModel& model, NodeId shown) {
  const std::vector<ModuleId> path = model.pathTo(model.moduleOf(shown));
  FoldState state = m_state;
  for (const ModuleId id : m_followed)
    if (!contains(path, id)) close(id, state);
  std::vector<ModuleId> followed;
  for (const ModuleId id : path)
    if (contains(m_followed, id) || !state.isOpen(id)) followed.push_back(id);
  m_followed = std::move(followed);
  openUpTo(model, model.moduleOf(shown), state);
  return adopt(std::move(state));
}

bool Folds::adopt(FoldState state) {
  if (state == m_state) return false;
  m_state = std::move(state);
  return true;
}

}  // namespace cleave::views
