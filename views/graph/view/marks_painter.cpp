#include "views/graph/view/marks_painter.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace cleave::views {

MarksPainter::MarksPainter(const PaintStyle& style, const DrawnGraph& drawn, double zoom, const QRectF& area)
    : m_drawn(drawn),
      m_theme(style.theme),
      m_items(drawn.scene()->items()),
      m_scene(style, *drawn.scene(), zoom),
      m_area(area) {}

void MarksPainter::paint(QPainter& painter, const Marks& marks, const Hover& hover, const SelectedBox& selected) const {
  for (const std::uint32_t i : itemsOf(marks.flashing()))
    marks.isFlashUndone() ? m_scene.fade(painter, m_items[i]) : m_scene.glow(painter, m_items[i], m_theme.accent);
  for (const std::uint32_t i : itemsOf(marks.different()))
    if (m_items[i].kind != ItemKind::Frame) m_scene.changed(painter, m_items[i]);
  for (const std::uint32_t i : itemsOf(marks.searchHits())) m_scene.ring(painter, m_items[i], m_theme.searchHit, 4, 1);
  paintHover(painter, hover);
  paintSelection(painter, selected);
  if (marks.current().isValid()) {
    if (const auto item = m_drawn.itemOf(marks.current()); item != SceneItem::kNone) {
      m_scene.glow(painter, m_items[item], m_theme.accent);
      m_scene.ring(painter, m_items[item], m_theme.accent, 2, 2);
    }
  }
  for (const std::uint32_t i : itemsOf(marks.conflicts())) m_scene.conflict(painter, m_items[i]);
  for (const std::uint32_t i : itemsOf(marks.breakpoints())) m_scene.breakpoint(painter, m_items[i]);
}

std::vector<std::uint32_t> MarksPainter::itemsOf(const std::vector<NodeId>& nodes) const {
  std::vector<std::uint32_t> found;
  for (const NodeId node : nodes)
    if (const auto item = m_drawn.itemOf(node); item != SceneItem::kNone && m_items[item].rect.intersects(m_area))
      found.push_back(item);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void MarksPainter::paintHover(QPainter& painter, const Hover& hover) const {
  if (hover.item == SceneItem::kNone || m_items[hover.item].kind == ItemKind::Frame) return;
  m_scene.ring(painter, m_items[hover.item], m_theme.accent, 1, 1);
  if (hover.hub.isValid()) paintHubEdge(painter, hover.item, hover.hub);
}

/// Colours the selection's inputs and readers differently, lines and boxes alike.
void MarksPainter::paintSelection(QPainter& painter, const SelectedBox& selected) const {
  const std::uint32_t item = itemOf(m_drawn, selected);
  if (item == SceneItem::kNone) return;
  paintNeighbours(painter, m_drawn.links().sourcesOf(item), m_theme.inputs);
  paintNeighbours(painter, m_drawn.links().readersOf(item), m_theme.outputs);
  m_scene.ring(painter, m_items[item], m_theme.accent, 2.5, 1);
  if (!selected.node.isValid()) return;
  for (const ValueId hub : m_drawn.model()->trimmings(selected.node).hubs) paintHubEdge(painter, item, hub);
}

void MarksPainter::paintNeighbours(QPainter& painter, const Neighbourhood& near, const QColor& color) const {
  const auto& edges = m_drawn.scene()->edges();
  for (const std::uint32_t e : near.edges) m_scene.edge(painter, edges[e], color, 2);
  for (const std::uint32_t e : near.edges)  // above the line, as everywhere
    if (const std::uint32_t from = edges[e].from; from != SceneItem::kNone) m_scene.badges(painter, m_items[from]);
  for (const std::uint32_t i : near.items) m_scene.ring(painter, m_items[i], color, 1.5, 1);
}

/// A hub's hidden edge, from its maker to a reader.
void MarksPainter::paintHubEdge(QPainter& painter, std::uint32_t reader, ValueId hub) const {
  const std::uint32_t maker = m_drawn.itemOf(m_drawn.graph()->value(hub).producer);
  if (maker == SceneItem::kNone || maker == reader) return;
  const QRectF &a = m_items[maker].rect, &b = m_items[reader].rect;
  const QPointF from =
      a.center().y() < b.center().y() ? QPointF(a.center().x(), a.bottom()) : QPointF(a.center().x(), a.top());
  const QPointF to(b.left(), b.bottom() - 10);
  const double reach = std::max(40.0, std::abs(to.y() - from.y()) * 0.4);
  QPainterPath path(from);
  path.cubicTo(from + QPointF(0, reach), to - QPointF(reach, 0), to);
  QPen pen(m_theme.inputs, 1.5, Qt::DashLine);
  pen.setCosmetic(true);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
  m_scene.ring(painter, m_items[maker], m_theme.inputs, 1.5, 1);
}

}  // namespace cleave::views
