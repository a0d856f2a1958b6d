#pragma once
/// Draws a scene, with the same routine for the window, for pictures and for SVG or PDF. Detail follows the size on the
/// device: a frame too small to read is one block with its placement bar, an operator a filled box. Names appear at
/// readable type sizes, shapes and weights at full size.
///
/// The painter must map world pixels to the device. `zoom`: device pixels per world pixel.
#include <QPainter>

#include "views/base/theme.h"
#include "views/graph/model/heat_field.h"
#include "views/graph/model/placement_board.h"
#include "views/graph/scene/scene.h"
#include "views/graph/scene/split_filter.h"

namespace cleave::views {

struct PaintStyle {
  const GraphModel* model = nullptr;
  const PlacementBoard* board = nullptr;
  Labels* labels = nullptr;
  Theme theme;
  SplitFilter filter;               ///< items that it excludes are drawn faint
  const HeatField* heat = nullptr;  ///< colours by amounts; null: by strategy and placement
};

class ScenePainter {
 public:
  ScenePainter(const PaintStyle& style, const Scene& scene, double zoom);

  /// Draws everything that touches `area` (world): frames first, then lines, then boxes.
  void paint(QPainter& painter, const QRectF& area);
  /// Draws everything in small: boxes as plain rectangles, without lines and text. Linear in boxes, at low cost per
  /// box.
  void paintOverview(QPainter& painter);

  // Marks drawn over the picture.
  void ring(QPainter& painter, const SceneItem& item, const QColor& color, double width, double gap = 2) const;
  void glow(QPainter& painter, const SceneItem& item, const QColor& color) const;
  void fade(QPainter& painter, const SceneItem& item) const;  ///< a value that a step took back
  void conflict(QPainter& painter, const SceneItem& item) const;
  void changed(QPainter& painter, const SceneItem& item) const;  ///< differs between two plans
  void breakpoint(QPainter& painter, const SceneItem& item) const;
  /// The collectives after an operator, on its outgoing line. Not drawn at small sizes.
  void badges(QPainter& painter, const SceneItem& item) const;
  void edge(QPainter& painter, const SceneEdge& edge, const QColor& color, double width) const;
  void edgeLabel(QPainter& painter, const SceneEdge& edge) const;

  // Positions of an item's parts in world pixels, for hit tests.
  static QRectF foldButton(const SceneItem& item, const Metrics& metrics);
  static QRectF listButton(const SceneItem& item, const Metrics& metrics);  ///< stacks: unfold into a list
  static QRectF header(const SceneItem& item, const Metrics& metrics);
  static QRectF card(const SceneItem& item, const Metrics& metrics);  ///< the front sheet of a stack, else the rect
  /// The chip of a hub at this point of an operator or folded module.
  static const HubLabel* chipAt(const SceneItem& item, Labels& labels, const QPointF& p);

  /// World pixels per device pixel.
  double hair() const { return 1 / m_zoom; }

 private:
  /// A box's fill and chip text: a layer's by its strategy, other operators' by placement, or all by amount.
  struct Fill {
    QColor color;
    std::optional<LayerSplit> split;  ///< of a layer
    std::optional<Tint> tint;         ///< of the result; nullopt: plain, or by amount
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
  /// How a module's work is split, or its cost.
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

/// Text of readable size: `pixels` high on the device at any zoom, shortened by elideModeOf.
void drawScreenText(QPainter& painter, const QRectF& world, QFont font, double pixels, const QColor& color, int flags,
                    const QString& text);
/// The sign of a collective in a square: ⊕ all-reduce, ⇉ all-gather, ⇇ reduce-scatter. It is drawn, not typed.
void drawCollective(QPainter& painter, const QRectF& square, rules::CollectiveKind kind, const QColor& color);

}  // namespace cleave::views
