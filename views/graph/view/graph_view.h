#pragma once
/// The canvas: a graph with modules that fold and unfold, coloured by placement. It draws and forwards; it makes no
/// decisions.
///
/// GUI thread only. Layouts arrive from the helper process in the background (`readyChanged`), and the previous picture
/// stays until then. New placements repaint the changed boxes without a new layout: they come from the view's counts,
/// whose owner reports the changes. This class joins the parts of this folder, one idea each: position (zoom_area.h),
/// graph and scene (drawn_graph.h), folds, colours, marks, selection, strips.
///
///     GraphView view;
///     view.setSplits(counts);                          // a std::shared_ptr<const SplitCounts>
///     view.showSplits(counts->update(changedNodes));
///     connect(&view, &GraphView::nodeClicked, this, &Window::focusNode);
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "views/base/theme.h"
#include "views/graph/layout/layouter.h"
#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/arrival.h"
#include "views/graph/view/colors.h"
#include "views/graph/view/drawn_graph.h"
#include "views/graph/view/folds.h"
#include "views/graph/view/marks.h"
#include "views/graph/view/marks_painter.h"
#include "views/graph/view/selected_box.h"
#include "views/graph/view/strips.h"
#include "views/graph/view/zoom_area.h"

namespace cleave::views {

class GraphView : public ZoomArea {
  Q_OBJECT
 public:
  explicit GraphView(QWidget* parent = nullptr);
  explicit GraphView(LayoutHelper helper, QWidget* parent = nullptr);

  // ---- content
  /// The drawn graph and its split. Null: empty. Resets everything below.
  void setSplits(std::shared_ptr<const SplitCounts> splits);
  const graph::Graph* graph() const { return m_drawn.graph(); }
  const GraphModel* model() const { return m_drawn.model(); }
  const Scene* scene() const { return m_drawn.scene(); }
  const Metrics& metrics() const { return m_drawn.metrics(); }
  void showSplits();                                 ///< all of the counts may have changed
  void showSplits(std::span<const NodeId> changed);  ///< as SplitCounts::update answered them
  void setHelpersFolded(bool folded);                ///< skip aliases and group rotary helpers (default)
  bool areHelpersFolded() const { return m_drawn.areHelpersFolded(); }
  bool isReady() const { return !m_isBuilding; }  ///< no layout is running: the picture is up to date

  // ---- colours
  void setPlan(const plan::Plan* plan);  ///< collectives' badges; null: none
  /// Colours by amounts of kind `what`. Axis (amounts empty) returns to placements. `note` replaces the legend's scale
  /// while there are no amounts ("computing …").
  void setColorBy(ColorBy what, HeatAmounts amounts, const QString& note = {}, HeatGaps gaps = {});
  ColorBy colorBy() const { return m_colors.by(); }                 ///< for tests
  const HeatField* heat() const { return m_colors.heat(); }         ///< null: colours show the axis
  const PlacementBoard* board() const { return m_colors.board(); }  ///< placements and tallies of modules; for tests
  void setTheme(const Theme& theme);                                ///< default: the palette's theme

  // ---- marks
  void setChangedNodes(std::vector<NodeId> nodes);  ///< outlined: different in another plan
  void setConflictNodes(std::vector<NodeId> nodes);
  void setCurrentNode(NodeId node) { m_marks.setCurrent(node); }  ///< ring at the search's position; invalid: no ring
  /// Highlights the nodes that a step assigned, or (faded) took back, for 150 ms.
  void flash(std::vector<NodeId> nodes, bool isUndone) { m_marks.flash(std::move(nodes), isUndone); }
  void setBreakpoints(std::vector<NodeId> nodes) { m_marks.setBreakpoints(std::move(nodes)); }
  void setSearchHits(std::vector<NodeId> nodes) { m_marks.setSearchHits(std::move(nodes)); }

  // ---- selection and folding
  void selectValue(ValueId value) { select(boxOf(m_drawn, value), false); }  ///< invalid: no selection
  void selectNode(NodeId node) { select(boxOf(m_drawn, node), false); }
  void selectScope(ScopeId scope) { select(boxOf(m_drawn, scope), false); }
  NodeId selectedNode() const { return m_selected.node; }  ///< for tests
  void reveal(NodeId node);                                ///< unfolds its modules and scrolls to it
  void reveal(ScopeId scope);
  /// As `reveal`, for a focus that moves on its own: modules unfolded for one node are folded again for the next,
  /// unless the user folded or unfolded something in between.
  void follow(NodeId node);
  void expand(ScopeId scope);  ///< a dissolved list ("layers"): unstacks its members
  void collapse(ScopeId scope);
  bool isExpanded(ScopeId scope) const;
  void expandAll();
  void collapseAll();
  std::vector<ScopeId> expandedScopes() const;

  // ---- view and pictures; more in ZoomArea
  /// Fits the whole picture, or its top if the whole would be too small to read.
  void fitReadable();
  QRectF viewRect(const SceneItem& item) const { return view().toView(item.rect); }  ///< in viewport pixels
  QSizeF pictureSize() const;  ///< of the whole drawing at 100 % with its legend. Empty: no drawing yet
  /// Paints the part `area` of that picture (100 %), with marks. The painter maps it to a device with `zoom` pixels per
  /// unit.
  void paintPicture(QPainter& painter, const QRectF& area, double zoom);
  /// Titles of the drawn boxes, top to bottom, for tests and screen readers.
  QString visibleText() const { return m_drawn.text(); }

 signals:
  void nodeClicked(cleave::graph::NodeId node);
  void nodeActivated(cleave::graph::NodeId node);  ///< double click or Enter
  void scopeClicked(cleave::graph::ScopeId scope);
  void hovered(cleave::graph::NodeId node, cleave::graph::ScopeId scope);
  void selectionCleared();
  void expandedChanged();
  void contextMenuRequested(const QPoint& globalPosition, cleave::graph::NodeId node, cleave::graph::ScopeId scope);
  void readyChanged(bool ready);
  void breadcrumbChanged(const QStringList& path);  ///< modules around the selection, outermost first
  void message(const QString& text);                ///< for the log, when the layout helper failed

 protected:
  void paintPart(QPainter& painter, const QRect& part) override;
  void paintMarks(QPainter& painter) override;
  void paintEmpty(QPainter& painter) override;
  void viewMoved() override;
  void hoverAt(const QPointF& world) override;
  void clickAt(const QPointF& world, Qt::KeyboardModifiers modifiers) override;
  bool viewportEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void makeModel();
  void rebuild(const Arrival& arrival);
  void refold(const Arrival& arrival);
  void retry();
  void goTo(bool areFoldsNew, const Arrival& arrival);
  void toggle(std::uint32_t item, bool asList);
  void select(const SelectedBox& box, bool isByUser);
  void setHover(const Hover& hover);
  void walk(Qt::Key arrow);
  QRectF selectedRect() const;  ///< world; null: nothing selected
  void recount();
  void updateStatus();
  void repaintItems(std::span<const std::uint32_t> items);
  void placeStrips();
  void fitStrips();
  void growStrips(bool mayShrink);
  PaintStyle paintStyle() const;
  const SceneItem& item(std::uint32_t index) const { return scene()->items()[index]; }

  DrawnGraph m_drawn;
  Colors m_colors;
  Marks m_marks;
  Folds m_folds;
  SelectedBox m_selected;
  Hover m_hover;
  NodeId m_ledTo;  ///< destination of the last click on a chip
  Layouter m_layouter;
  bool m_isBuilding = false;
  Arrival m_arrival;
  Theme m_theme;
  bool m_hasOwnTheme = false;
  Strips m_strips;
};

}  // namespace cleave::views
