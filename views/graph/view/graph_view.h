#pragma once
/// The canvas: a graph with its modules folded and unfolded, coloured by placement. Draws and forwards; decides
/// nothing.
///
/// GUI thread only. Layouts arrive from the helper process in the background (`readyChanged`); until then the former
/// picture stays. New placements repaint what changed and never lay out: they are read from the counts that the view
/// was given, whose owner says what changed in them. The strips with legend and minimap belong to the view; nothing
/// floats over the drawing.
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
  /// What is drawn, and how it is split; null: empty. Everything below starts anew.
  void setSplits(std::shared_ptr<const SplitCounts> splits);
  const graph::Graph* graph() const { return m_splits ? &m_splits->graph() : nullptr; }
  const GraphModel* model() const { return m_model.get(); }
  void showSplits();                                 ///< all of the counts may have changed
  void showSplits(std::span<const NodeId> changed);  ///< as SplitCounts::update answered them
  void setPlan(const plan::Plan* plan);              ///< collectives' badges; null: none
  /// Colours by amounts: `what` says of what; Axis (amounts empty) goes back to placements. `note` stands in the legend
  /// instead of the scale while there are no amounts ("computing …").
  void setColorBy(ColorBy what, HeatAmounts amounts, const QString& note = {}, HeatGaps gaps = {});
  ColorBy colorBy() const { return m_colorBy; }                  ///< for tests
  const HeatField* heat() const { return m_heat.get(); }         ///< null: colours say the axis
  const PlacementBoard* board() const { return m_board.get(); }  ///< what modules are said to hold; for tests
  void setChangedNodes(std::vector<NodeId> nodes);               ///< outlined: they differ from another plan
  void setConflictNodes(std::vector<NodeId> nodes);
  void setCurrentNode(NodeId node);  ///< where the search stands: a ring; invalid: none
  /// Shows for 150 ms what a step assigned, or (faded) took back.
  void flash(std::vector<NodeId> nodes, bool isUndone);
  void setBreakpoints(std::vector<NodeId> nodes);
  void setSearchHits(std::vector<NodeId> nodes);
  void setHelpersFolded(bool folded);  ///< aliases passed through, rotary helpers grouped (default)
  bool areHelpersFolded() const { return m_modelOptions.foldNoise; }
  void setTheme(const Theme& theme);  ///< otherwise taken from the palette

  // ---- selection and folding
  void selectValue(ValueId value);  ///< invalid: nothing
  void selectNode(NodeId node);
  void selectScope(ScopeId scope);
  NodeId selectedNode() const { return m_selection.node; }  ///< for tests
  void reveal(NodeId node);                                 ///< opens what is around it and brings it into view
  void reveal(ScopeId scope);
  /// As `reveal`, for a focus that moves on its own: what it opened for one node it folds again for the next, unless
  /// the user folded or unfolded something meanwhile.
  void follow(NodeId node);
  void expand(ScopeId scope);  ///< of a dissolved list ("layers"): its stacks into lists
  void collapse(ScopeId scope);
  bool isExpanded(ScopeId scope) const;
  void expandAll();
  void collapseAll();
  std::vector<ScopeId> expandedScopes() const;
  /// While still, a new size of the view neither moves nor rescales the picture.
  void setStill(bool isStill) { m_isStill = isStill; }
  /// No layout is running: the picture shows what was asked for.
  bool isReady() const { return !m_isBuilding; }

  // ---- view
  double zoom() const { return m_zoom; }
  void zoomTo(double zoom);  ///< about the middle
  void zoomBy(double factor) { zoomTo(m_zoom * factor); }
  void fit();
  /// All, or its top where all of it would be too small to read anything of.
  void fitReadable();
  QRectF visibleArea() const;  ///< world pixels
  const Scene* scene() const { return m_scene.get(); }
  const Metrics& metrics() const { return *m_metrics; }
  QRectF viewRect(const SceneItem& item) const;  ///< in viewport pixels

  // ---- pictures
  /// Of the whole drawing at 100 % under its legend; empty: there is none yet.
  QSizeF pictureSize() const;
  /// The part `area` of that picture (100 %), with marks; the painter maps it to a device of `zoom` pixels for each.
  void paintPicture(QPainter& painter, const QRectF& area, double zoom);
  QString visibleText() const;  ///< titles of what is drawn, top to bottom: for tests and readers

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
  void message(const QString& text);  ///< for the log: the layout helper failed

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
  /// What the next scene has to bring into view.
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
  void bringIntoView(const QRectF& world);
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
  std::vector<ModuleId> m_followed;  ///< opened by `follow` alone
  Selection m_selection;

  // picture
  Layouter m_layouter;
  std::shared_ptr<const Scene> m_scene;
  std::unique_ptr<SceneLinks> m_links;
  bool m_isBuilding = false;
  Arrival m_arrival;
  double m_zoom = 1;
  QPointF m_offset;        ///< viewport pixels of the world's origin; whole numbers, so that panning blits
  bool m_isFitted = true;  ///< follows the window's size until the user moves
  bool m_isStill = false;
  Theme m_theme;
  bool m_hasOwnTheme = false;
  QPixmap m_base;
  double m_baseZoom = 0;
  QPointF m_baseOffset;
  QRegion m_stale;  ///< of m_base, viewport pixels

  // input
  std::uint32_t m_hovered = SceneItem::kNone;
  ValueId m_hoveredHub;
  NodeId m_ledTo;  ///< where the last click led, if it was on a chip that leads elsewhere
  QPoint m_pressedAt;
  QPointF m_draggedFrom;
  bool m_isDragging = false, m_isPressed = false;
  Legend* m_legend = nullptr;
  Minimap* m_minimap = nullptr;
  int m_stripHeight = 0;  ///< of the legend
};

}  // namespace cleave::views
