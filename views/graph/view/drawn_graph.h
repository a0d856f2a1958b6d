#pragma once
/// The graph on the canvas: its split, its model, its labels, and the scene of the current folds.
///
/// Each is made from those before it, so a new split, font or option drops what follows. GUI thread only (fonts).
///
///     DrawnGraph drawn(font);
///     drawn.setSplits(counts);
///     drawn.make();
///     if (drawn.makeScene(folds, layouts)) paint(*drawn.scene());
#include <QFont>
#include <QString>
#include <memory>

#include "views/graph/model/graph_model_builder.h"
#include "views/graph/model/labels.h"
#include "views/graph/model/split_counts.h"
#include "views/graph/scene/scene.h"
#include "views/graph/scene/scene_links.h"

namespace cleave::views {

class DrawnGraph {
 public:
  explicit DrawnGraph(const QFont& font) { setFont(font); }

  // Call `make` after these.
  void setSplits(std::shared_ptr<const SplitCounts> splits);  ///< null: an empty canvas
  void setFont(const QFont& font);
  void setHelpersFolded(bool folded);  ///< skip aliases and group rotary helpers (default)
  bool areHelpersFolded() const { return m_options.foldNoise; }

  /// Makes the model and its labels. There is no scene then.
  void make();
  /// Makes the scene. False: a layout or the model is missing, and the last scene stays.
  bool makeScene(const FoldState& folds, const LayoutSource& layouts);

  // Null until made.
  const graph::Graph* graph() const { return m_splits ? &m_splits->graph() : nullptr; }
  const SplitCounts* splits() const { return m_splits.get(); }
  const GraphModel* model() const { return m_model.get(); }
  const Scene* scene() const { return m_scene.get(); }

  const Metrics& metrics() const { return *m_metrics; }
  Labels& labels() const { return *m_labels; }  ///< requires a model
  const SceneLinks& links() const;              ///< requires a scene

  bool has(ScopeId scope) const;  ///< a valid scope of a drawn graph
  // The item that shows a node or module. kNone: not drawn, or no scene.
  std::uint32_t itemOf(NodeId node) const { return m_scene ? m_scene->itemOf(*m_model, node) : SceneItem::kNone; }
  std::uint32_t itemOf(ModuleId module) const { return m_scene ? m_scene->itemOf(*m_model, module) : SceneItem::kNone; }
  /// The node drawn for this one: itself, the one whose value it passes on, or its first reader. Invalid: not drawn.
  NodeId standIn(NodeId node) const;
  /// The scope of a module, or of the nearest module around it with a scope.
  ScopeId scopeOf(ModuleId module) const;
  /// Titles of the drawn boxes, top to bottom.
  QString text() const;

 private:
  std::shared_ptr<const SplitCounts> m_splits;
  GraphModelOptions m_options;
  std::unique_ptr<Metrics> m_metrics;
  std::unique_ptr<GraphModel> m_model;
  std::unique_ptr<Labels> m_labels;
  std::shared_ptr<const Scene> m_scene;
  mutable std::unique_ptr<SceneLinks> m_links;  ///< made when asked for
};

}  // namespace cleave::views
