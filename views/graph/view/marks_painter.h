#pragma once
/// Draws over the picture: marks, the box under the pointer, and the selection with its neighbours.
///
///     MarksPainter(style, drawn, zoom, area).paint(painter, marks, hover, selected);
#include <QPainter>
#include <vector>

#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/drawn_graph.h"
#include "views/graph/view/marks.h"
#include "views/graph/view/selected_box.h"

namespace cleave::views {

/// What the pointer is over.
struct Hover {
  std::uint32_t item = SceneItem::kNone;
  ValueId hub;  ///< of the chip under the pointer; invalid: no chip
  bool operator==(const Hover&) const = default;
};

class MarksPainter {
 public:
  /// Draws marks that touch `area` (world). The painter must map world pixels; `zoom`: device pixels per world pixel.
  /// `style` and `drawn` outlive it; `drawn` has a scene.
  MarksPainter(const PaintStyle& style, const DrawnGraph& drawn, double zoom, const QRectF& area);
  void paint(QPainter& painter, const Marks& marks, const Hover& hover, const SelectedBox& selected) const;

 private:
  /// The items that show the nodes and touch the area, in order.
  std::vector<std::uint32_t> itemsOf(const std::vector<NodeId>& nodes) const;
  void paintHover(QPainter& painter, const Hover& hover) const;
  void paintSelection(QPainter& painter, const SelectedBox& selected) const;
  void paintNeighbours(QPainter& painter, const Neighbourhood& near, const QColor& color) const;
  void paintHubEdge(QPainter& painter, std::uint32_t reader, ValueId hub) const;

  const DrawnGraph& m_drawn;
  const Theme& m_theme;
  const std::vector<SceneItem>& m_items;
  ScenePainter m_scene;
  QRectF m_area;
};

}  // namespace cleave::views
