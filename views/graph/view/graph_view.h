#pragma once
/// The canvas: a graph with modules that fold and unfold, coloured by placement. It draws and forwards; it makes no
/// decisions.
///
/// GUI thread only. Layouts arrive from the helper process in the background (`readyChanged`), and the previous picture
/// stays until then. New placements repaint the changed boxes without a new layout: they come from the view's counts,
/// whose owner reports the changes. The strips with legend and minimap belong to the view, so nothing floats over the
/// drawing.
///
///     GraphView view;
///     view.setSplits(counts);                          // a std::shared_ptr<const SplitCounts>
///     view.showSplits(counts->update(changedNodes));
///     connect(&view, &GraphView::nodeClicked, this, &Window::focusNode);
#include <QAbstractScrollArea>
#include <QElapsedTimer>
#include <QPixmap>
#include <QTimer>
#include <memory>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "views/base/theme.h"
#include "views/graph/layout/layouter.h"
#include "views/graph/model/graph_model_builder.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/model/placement_board.h"
#include "views/graph/scene/scene.h"
#include "views/graph/scene/scene_links.h"

namespace cleave::views {

class Legend;
class LegendDrawing;
class Minimap;
class ScenePainter;
struct PaintStyle;

class GraphView : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit GraphView(QWidget* parent = nullptr);
  explicit GraphView(LayoutHelper helper, QWidget* parent = nullptr);
  ~GraphView() override;

  // ---- content
  /// The drawn graph and its split. Null: empty. Resets everything below.
  void setSplits(std::shared_ptr<const SplitCounts> splits);
  const graph::Graph* graph() const { return m_splits ? &m_splits->graph() : nullptr; }
  const GraphModel* model() const { return m_model.get(); }
  void showSplits();                                 ///< all of the counts may have changed
  void showSplits(std::span<const NodeId> changed);  ///< as SplitCounts::update answered them
  void setPlan(const plan::Plan* plan);              ///< collectives' badges; null: none
  /// Colours by amounts of kind `what`. Axis (amounts empty) returns to placements. `note` replaces the legend's scale
  /// while there are no amounts ("computing …").
  void setColorBy(ColorBy what, HeatAmounts amounts, const QString& note = {}, HeatGaps gaps = {});
  ColorBy colorBy() const { return m_colorBy; }                  ///< for tests
  const HeatField* heat() const { return m_heat.get(); }         ///< null: colours show the axis
  const PlacementBoard* board() const { return m_board.get(); }  ///< placements and tallies of modules; for tests
  void setChangedNodes(std::vector<NodeId> nodes);               ///< outlined: different in another plan
  void setConflictNodes(std::vector<NodeId> nodes);
  void setCurrentNode(NodeId node);  ///< ring at the search's position; invalid: no ring
  /// Highlights the nodes that a step assigned, or (faded) took back, for 150 ms.
  void flash(std::vector<NodeId> nodes, bool isUndone);
  void setBreakpoints(std::vector<NodeId> nodes);
  void setSearchHits(std::vector<NodeId> nodes);
  void setHelpersFolded(bool folded);  ///< skip aliases and group rotary helpers (default)
  bool areHelpersFolded() const { return m_modelOptions.foldNoise; }
  void setTheme(const Theme& theme);  ///< default: the palette's theme

  // ---- selection and folding
  void selectValue(ValueId value);  ///< invalid: no selection
  void selectNode(NodeId node);
  void selectScope(ScopeId scope);
  NodeId selectedNode() const { return m_selection.node; }  ///< for tests
  void reveal(NodeId node);                                 ///< unfolds its modules and scrolls to it
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
  /// While true, a new size of the view neither moves nor rescales the picture.
  void setStill(bool isStill) { m_isStill = isStill; }
  /// No layout is running: the picture is up to date.
  bool isReady() const { return !m_isBuilding; }

  // ---- view
  double zoom() const { return m_zoom; }
  void zoomTo(double zoom);  ///< about the view's middle
  void zoomBy(double factor) { zoomTo(m_zoom * factor); }
  void fit();
  /// Fits the whole picture, or its top if the whole would be too small to read.
  void fitReadable();
  QRectF visibleArea() const;  ///< world pixels
  const Scene* scene() const { return m_scene.get(); }
  const Metrics& metrics() const { return *m_metrics; }
  QRectF viewRect(const SceneItem& item) const;  ///< in viewport pixels

  // ---- pictures
  /// The size of the whole drawing at 100 % with its legend. Empty: no drawing yet.
  QSizeF pictureSize() const;
  /// Paints the part `area` of that picture (100 %), with marks. The painter maps it to a device with `zoom` pixels per
  /// unit.
  void paintPicture(QPainter& painter, const QRectF& area, double zoom);
  QString visibleText() const;  ///< titles of the drawn boxes, top to bottom, for tests and screen readers

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
  void zoomChanged(double zoom);
  void message(const QString& text);  ///< for the log, when the layout helper failed

 protected:
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void scrollContentsBy(int, int) override {}

 private:
  struct Selection {
    NodeId node;
    ModuleId module;
    int output = -1;
    bool operator==(const Selection&) const = default;
  };
  /// The item that the next scene must scroll to.
  struct Arrival {
    enum class Kind { Stay, Fit, Readable, Anchor, Show } kind = Kind::Stay;
    ModuleId module;   ///< Anchor, Show
    NodeId node;       ///< Show
    QPointF position;  ///< Anchor: where the header was, viewport pixels
  };

  // graph_view.cpp
  void makeModel();
  void makeMetrics();
  void rebuild(Arrival arrival);
  void retry();
  void arrive();
  void setFolds(FoldState folds, Arrival arrival);
  void toggle(std::uint32_t item, bool asList);
  void openAncestors(ModuleId module, FoldState& folds) const;
  NodeId standIn(NodeId node) const;
  void showNode(NodeId node, FoldState folds);
  void showItem(std::uint32_t item);
  void collectIn(ScopeId scope, std::vector<ModuleId>& modules) const;
  void select(Selection selection, bool isByUser);
  std::uint32_t selectedItem() const;
  QStringList breadcrumb() const;
  void repaintItems(std::span<const std::uint32_t> items);
  void recount();
  void makeHeat();
  void updateStatus();
  ScopeId scopeOf(ModuleId module) const;

  // graph_view_input.cpp
  QPointF toWorld(const QPointF& view) const { return (view - m_offset) / m_zoom; }
  QPointF toView(const QPointF& world) const { return world * m_zoom + m_offset; }
  void zoomAt(double zoom, const QPointF& view);
  void panBy(const QPointF& by);
  void keepInReach();
  void scrollIntoView(const QRectF& world);
  void setHovered(std::uint32_t item, ValueId hub);
  void click(std::uint32_t item, const QPointF& world, Qt::KeyboardModifiers modifiers);
  void walk(int key);
  QString tooltip(std::uint32_t item, const QPointF& world) const;
  void placeStrips();
  void fitStrips();
  void growStrips(bool mayShrink = false);

  // graph_view_paint.cpp
  PaintStyle paintStyle() const;
  void paintBase(const QRegion& region);
  void shiftBase();
  void paintMarks(QPainter& painter, double zoom, const QRectF& area);
  void paintSelection(QPainter& painter, const ScenePainter& marks);
  void paintHubEdge(QPainter& painter, const ScenePainter& marks, std::uint32_t from, ValueId hub);
  void paintEmpty(QPainter& painter);
  LegendDrawing pictureLegend() const;

  // content
  std::shared_ptr<const SplitCounts> m_splits;
  GraphModelOptions m_modelOptions;
  std::unique_ptr<GraphModel> m_model;
  std::unique_ptr<Metrics> m_metrics;
  std::unique_ptr<Labels> m_labels;
  std::unique_ptr<PlacementBoard> m_board;
  std::map<ValueId, std::vector<CollectiveBadge>> m_collectives;
  std::vector<NodeId> m_conflicts, m_breakpoints, m_searchHits, m_changed;
  ColorBy m_colorBy = ColorBy::Axis;
  HeatAmounts m_amounts;
  HeatGaps m_gaps;
  QString m_heatNote;
  std::unique_ptr<HeatField> m_heat;
  NodeId m_current;
  std::vector<NodeId> m_flash;
  bool m_isFlashUndone = false;
  QTimer m_flashTimer;
  FoldState m_folds;
  std::vector<ModuleId> m_followed;  ///< modules that only `follow` opened
  Selection m_selection;

  // picture
  Layouter m_layouter;
  std::shared_ptr<const Scene> m_scene;
  std::unique_ptr<SceneLinks> m_links;
  bool m_isBuilding = false;
  Arrival m_arrival;
  double m_zoom = 1;
  QPointF m_offset;        ///< viewport position of the world's origin; whole pixels, so that panning can copy pixels
  bool m_isFitted = true;  ///< the picture follows the window's size until the user moves it
  bool m_isStill = false;
  Theme m_theme;
  bool m_hasOwnTheme = false;
  QPixmap m_base;
  double m_baseZoom = 0;
  QPointF m_baseOffset;
  QRegion m_stale;  ///< stale part of m_base, in viewport pixels

  // input
  std::uint32_t m_hovered = SceneItem::kNone;
  ValueId m_hoveredHub;
  NodeId m_ledTo;  ///< destination of the last click on a chip
  QPoint m_pressedAt;
  QPointF m_draggedFrom;
  bool m_isDragging = false, m_isPressed = false;
  Legend* m_legend = nullptr;
  Minimap* m_minimap = nullptr;
  int m_stripHeight = 0;  ///< height of the legend
};

}  // namespace cleave::views
