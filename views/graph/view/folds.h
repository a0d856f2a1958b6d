#pragma once
/// The open and closed modules of the canvas, and how they change: by the user, or by a focus that moves on its own.
///
/// Modules that only `follow` opened are closed again by the next `follow`, unless the user changed any module in
/// between. The model of all calls is the one that is drawn.
///
///     Folds folds;
///     folds.expand(model, scope);
///     if (folds.reveal(model, node)) layOut(folds.state());
#include <vector>

#include "views/graph/model/graph_model.h"
#include "views/graph/scene/scene.h"

namespace cleave::views {

class Folds {
 public:
  const FoldState& state() const { return m_state; }
  bool isExpanded(const GraphModel& model, ScopeId scope) const;
  /// Scopes of open modules, ascending.
  std::vector<ScopeId> expandedScopes(const GraphModel& model) const;

  // By the user
  void collapseAll();
  void expandAll(const GraphModel& model);
  /// Opens exactly these scopes and the modules around them.
  void open(const GraphModel& model, const std::vector<ScopeId>& scopes);
  void expand(const GraphModel& model, ScopeId scope);  ///< a dissolved list ("layers"): unstacks its members
  void collapse(const GraphModel& model, ScopeId scope);
  /// Opens or closes the module of a box. `asList`: a stack becomes a list of closed modules instead.
  void toggle(const GraphModel& model, const SceneItem& box, bool asList);

  // For a focus. True: some module opened or closed.
  bool reveal(const GraphModel& model, NodeId shown);
  bool reveal(const GraphModel& model, ModuleId module);  ///< the module itself stays as it is
  bool follow(const GraphModel& model, NodeId shown);

 private:
  bool adopt(FoldState state);

  FoldState m_state;
  std::vector<ModuleId> m_followed;  ///< modules that only `follow` opened
};

}  // namespace cleave::views
