#pragma once
/// Draws a scene: the same routine for the window, for pictures and for SVG or PDF. Detail follows the size on the
/// sheet: a frame too small to read is one block with its placement bar, an operator a filled box; names come with
/// legible type, shapes and weights at full size.
///
/// The painter must map world pixels to the device; `zoom` says by how much.
#include <QPainter>

#include "views/base/theme.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/model/placement_board.h"
#include "views/graph/scene/legend_drawing.h"
#include "views/graph/scene/scene.h"

namespace cleave::views {

struct PaintStyle {
  const GraphModel* model = nullptr;
  const PlacementBoard* board = nullptr;
  Labels* labels = nullptr;
  Theme theme;
  SplitFilter filter;               ///< what it leaves out is drawn faint
  const HeatField* heat = nullptr;  ///< colours by amounts; null: by strategy and placement
};

class ScenePainter {
 public:
  ScenePainter(const PaintStyle& style, const Scene& scene, double zoom);

  /// Everything that touches `area` (world), frames first, then lines, then boxes.
  void paint(QPainter& painter, const QRectF& area);
  /// All of it, small: boxes as plain rectangles, no lines, no words. Linear in boxes with little for each.
  void paintOverview(QPainter& painter);

  // Marks laid over the picture.
  void ring(QPainter& painter, const SceneItem& item, const QColor& color, double width, double gap = 2) const;
  void glow(QPainter& painter, const SceneItem& item, const QColor& color) const;
  void fade(QPainter& painter, const SceneItem& item) const;  ///< what is taken back
  void conflict(QPainter& painter, const SceneItem& item) const;
  void changed(QPainter& painter, const SceneItem& item) const;  ///< differs between two plans
  void breakpoint(QPainter& painter, const SceneItem& item) const;
  /// The collectives behind an operator, on the line that leaves it; nothing where it is drawn small.
  void badges(QPainter& painter, const SceneItem& item) const;
  void edge(QPainter& painter, const SceneEdge& edge, const QColor& color, double width) const;
  void edgeLabel(QPainter& painter, const SceneEdge& edge) const;

  // Where parts of an item lie, in world pixels, for hit tests.
  static QRectF foldButton(const SceneItem& item, const Metrics& metrics);
  static QRectF listButton(const SceneItem& item, const Metrics& metrics);  ///< stacks: unfold into a list
  static QRectF header(const SceneItem& item, const Metrics& metrics);
  static QRectF card(const SceneItem& item, const Metrics& metrics);  ///< the front sheet of a stack, else the rect
  /// The chip of a hub at a point of an operator or folded module.
  static const HubLabel* chipAt(const SceneItem& item, Labels& labels, const QPointF& p);

  /// How many world pixels one pixel on the device is.
  double hair() const { return 1 / m_zoom; }

 private:
  /// How a box is filled and what its chip says: a layer by its strategy, other operators by placement, or all by
  /// amount.
  struct Fill {
    QColor color;
    std::optional<LayerSplit> split;  ///< of a layer
    std::optional<Tint> tint;         ///< of the result; nullopt: plain, by amount
    bool isOpen = false;              ///< a dashed outline on the ground
    bool isDimmed = false;
    QString chip;
    bool isHatched() const { return split == LayerSplit::Replicated || (!split && tint == Tint::Replicated); }
  };
  Fill fillOf(const SceneItem& item) const;
  void paintFill(QPainter& painter, const QRectF& rect, const Fill& fill, double step) const;
  bool isCollapsed(const SceneItem& frame) const;
  bool isHidden(std::uint32_t frame, const std::vector<std::uint32_t>& collapsed) const;
  void drawFrame(QPainter& painter, const SceneItem& item);
  void drawFrameHeader(QPainter& painter, const SceneItem& item);
  void drawBlock(QPainter& painter, const SceneItem& item);
  void drawNode(QPainter& painter, const SceneItem& item);
  void drawFarNode(QPainter& painter, const SceneItem& item, const Fill& fill);
  void drawNearNode(QPainter& painter, const SceneItem& item, const Fill& fill);
  void drawOutput(QPainter& painter, const SceneItem& item);
  void drawFolded(QPainter& painter, const SceneItem& item);
  void drawBox(QPainter& painter, const QRectF& rect, const Fill& fill, bool isWholeBand);
  void drawDocks(QPainter& painter, const QRectF& rect, const NodeLabel& label, double top);
  void drawChips(QPainter& painter, const QRectF& rect, const std::vector<HubLabel>& hubs, double top);
  double chipWidth(const QString& text) const;
  void drawChip(QPainter& painter, const QRectF& band, const Fill& fill);
  void drawTitle(QPainter& painter, const QRectF& room, const SceneItem& item, const Fill& fill);
  double drawNotch(QPainter& painter, const QRectF& row, const SceneItem& item, const Fill& fill);
  /// How a module's work is split, or what it costs.
  void drawBar(QPainter& painter, const QRectF& bar, const SceneItem& module, const ModuleTally& tally);
  void outlineBar(QPainter& painter, const QRectF& bar) const;
  QString moduleAmount(const SceneItem& module) const;  ///< "Σ 1.25 ms"; empty without amounts
  void drawButton(QPainter& painter, const QRectF& rect, bool isOpen);
  void drawEdge(QPainter& painter, const SceneEdge& edge, const QPen& pen) const;
  double drawCounts(QPainter& painter, const QRectF& row, const ModuleTally& tally, const QString& counts);
  QColor sheet(const SceneItem& item) const;
  MaybePlacement placementOf(const SceneItem& item) const;
  QString dockText(const DockLabel& dock) const;
  QString elided(const QFontMetricsF& metrics, const QString& text, double width) const;

  const PaintStyle& m_style;
  const Scene& m_scene;
  const Theme& m_theme;
  const Metrics& m_metrics;
  double m_zoom;
};

/// Fills `rect` with a tint and its pattern, lines drawn so that they also come out in vector formats.
void fillTint(QPainter& painter, const QRectF& rect, const Theme& theme, Tint tint, double step);
void fillForm(QPainter& painter, const QRectF& rect, const Theme& theme, LayerSplit split, double step);
/// Text that stays legible: `pixels` high on the device whatever the zoom, shortened as elideModeOf says.
void drawScreenText(QPainter& painter, const QRectF& world, QFont font, double pixels, const QColor& color, int flags,
                    const QString& text);
/// The sign of a collective in a square: ⊕ all-reduce, ⇉ all-gather, ⇇ reduce-scatter, drawn, not typed.
void drawCollective(QPainter& painter, const QRectF& square, rules::CollectiveKind kind, const QColor& color);

}  // namespace cleave::views
