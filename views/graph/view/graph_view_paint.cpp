// The canvas on the screen: a cached base picture, repainted where it is stale, with marks drawn over it.
#include <QPaintEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "views/graph/scene/scene_painter.h"
#include "views/graph/view/graph_view.h"
#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"

namespace cleave::views {

PaintStyle GraphView::paintStyle() const {
  return {m_model.get(), m_board.get(), m_labels.get(), m_theme, m_legend->filter(), m_heat.get()};
}

void GraphView::paintEvent(QPaintEvent*) {
  QPainter screen(viewport());
  if (!m_scene) return paintEmpty(screen);
  const double dpr = devicePixelRatioF();
  const QSize size = viewport()->size() * dpr;
  if (m_base.size() != size || m_baseZoom != m_zoom) {
    if (m_base.size() != size) {
      m_base = QPixmap(size);
      m_base.setDevicePixelRatio(dpr);
    }
    m_stale = viewport()->rect();
  } else if (m_baseOffset != m_offset) {
    shiftBase();
  }
  m_baseZoom = m_zoom;
  m_baseOffset = m_offset;
  if (!m_stale.isEmpty()) paintBase(std::exchange(m_stale, QRegion()).intersected(viewport()->rect()));
  screen.drawPixmap(0, 0, m_base);
  screen.translate(m_offset);
  screen.scale(m_zoom, m_zoom);
  screen.setRenderHint(QPainter::Antialiasing);
  paintMarks(screen, m_zoom, visibleArea());
}

/// Panning copies the cached pixels and paints only the uncovered strips.
void GraphView::shiftBase() {
  const QPoint by = (m_offset - m_baseOffset).toPoint();
  const QRect all = viewport()->rect();
  if (std::abs(by.x()) >= all.width() || std::abs(by.y()) >= all.height() ||
      devicePixelRatioF() != std::floor(devicePixelRatioF())) {
    m_stale = all;
    return;
  }
  m_stale.translate(by);
  const int dpr = static_cast<int>(devicePixelRatioF());
  m_base.scroll(by.x() * dpr, by.y() * dpr, QRect(QPoint(0, 0), m_base.size()));
  m_stale += QRegion(all) - all.translated(by);
}

void GraphView::paintBase(const QRegion& region) {
  const PaintStyle style = paintStyle();
  ScenePainter scene(style, *m_scene, m_zoom);
  QPainter painter(&m_base);
  for (const QRect& rect : region) {
    painter.save();
    painter.setClipRect(rect);
    painter.fillRect(rect, m_theme.ground);
    painter.translate(m_offset);
    painter.scale(m_zoom, m_zoom);
    scene.paint(painter, QRectF(toWorld(rect.topLeft()), QSizeF(rect.size()) / m_zoom).adjusted(-1, -1, 1, 1));
    painter.restore();
  }
}

void GraphView::paintMarks(QPainter& painter, double zoom, const QRectF& area) {
  const PaintStyle style = paintStyle();
  const ScenePainter marks(style, *m_scene, zoom);
  const auto& items = m_scene->items();
  const auto forNodes = [&](const std::vector<NodeId>& nodes, auto&& draw) {
    std::vector<std::uint32_t> found;
    for (const NodeId n : nodes)
      if (const auto item = m_scene->itemOf(*m_model, n); item != SceneItem::kNone && items[item].rect.intersects(area))
        found.push_back(item);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const std::uint32_t item : found) draw(items[item]);
  };
  forNodes(m_flash, [&](const SceneItem& item) {
    if (m_isFlashUndone)
      marks.fade(painter, item);
    else
      marks.glow(painter, item, m_theme.accent);
  });
  forNodes(m_changed, [&](const SceneItem& item) {
    if (item.kind != ItemKind::Frame) marks.changed(painter, item);
  });
  forNodes(m_searchHits, [&](const SceneItem& item) { marks.ring(painter, item, m_theme.searchHit, 4, 1); });
  if (m_hovered != SceneItem::kNone && items[m_hovered].kind != ItemKind::Frame) {
    marks.ring(painter, items[m_hovered], m_theme.accent, 1, 1);
    if (m_hoveredHub.isValid()) paintHubEdge(painter, marks, m_hovered, m_hoveredHub);
  }
  paintSelection(painter, marks);
  if (m_current.isValid()) {
    if (const auto item = m_scene->itemOf(*m_model, m_current); item != SceneItem::kNone) {
      marks.glow(painter, items[item], m_theme.accent);
      marks.ring(painter, items[item], m_theme.accent, 2, 2);
    }
  }
  forNodes(m_conflicts, [&](const SceneItem& item) { marks.conflict(painter, item); });  // above the selection's ring
  forNodes(m_breakpoints, [&](const SceneItem& item) { marks.breakpoint(painter, item); });
}

/// Colours the selection's inputs and readers differently, lines and boxes alike.
void GraphView::paintSelection(QPainter& painter, const ScenePainter& marks) {
  const std::uint32_t item = selectedItem();
  if (item == SceneItem::kNone) return;
  if (!m_links) m_links = std::make_unique<SceneLinks>(*m_scene);
  const auto& items = m_scene->items();
  const auto show = [&](const Neighbourhood& near, const QColor& color) {
    for (const std::uint32_t e : near.edges) marks.edge(painter, m_scene->edges()[e], color, 2);
    for (const std::uint32_t e : near.edges)  // above the line, as everywhere
      if (const std::uint32_t from = m_scene->edges()[e].from; from != SceneItem::kNone)
        marks.badges(painter, items[from]);
    for (const std::uint32_t i : near.items) marks.ring(painter, items[i], color, 1.5, 1);
  };
  show(m_links->sourcesOf(item), m_theme.inputs);
  show(m_links->readersOf(item), m_theme.outputs);
  marks.ring(painter, items[item], m_theme.accent, 2.5, 1);
  if (!m_selection.node.isValid()) return;
  for (const ValueId hub : m_model->trimmings(m_selection.node).hubs) paintHubEdge(painter, marks, item, hub);
}

/// A hub's hidden edge, from its maker to a reader.
void GraphView::paintHubEdge(QPainter& painter, const ScenePainter& marks, std::uint32_t reader, ValueId hub) {
  const std::uint32_t maker = m_scene->itemOf(*m_model, graph()->value(hub).producer);
  if (maker == SceneItem::kNone || maker == reader) return;
  const auto& items = m_scene->items();
  const QRectF &a = items[maker].rect, &b = items[reader].rect;
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
  marks.ring(painter, items[maker], m_theme.inputs, 1.5, 1);
}

void GraphView::paintEmpty(QPainter& painter) {
  painter.fillRect(viewport()->rect(), m_theme.ground);
  painter.setPen(m_theme.textQuiet);
  const QString text =
      m_splits ? QStringLiteral("Laying out the graph …")
               : QStringLiteral("The model's graph appears here.\nOpen a model folder, or drop one on the window.");
  painter.drawText(viewport()->rect(), Qt::AlignCenter, text);
}

// ---- pictures

/// As wide as the drawing, but at least wide enough to read.
LegendDrawing GraphView::pictureLegend() const {
  constexpr int kLeastWidth = 420;
  LegendDrawing drawing(m_theme, m_metrics->small);
  drawing.setContent(m_legend->content());
  const int width = std::max(kLeastWidth, static_cast<int>(std::ceil(m_scene->bounds().width())));
  drawing.arrange({width, drawing.heightFor(width)}, 0, {});
  return drawing;
}

QSizeF GraphView::pictureSize() const {
  if (!m_scene) return {};
  const QSizeF legend = pictureLegend().size(), scene = m_scene->bounds().size();
  return {std::max(legend.width(), scene.width()), legend.height() + scene.height()};
}

void GraphView::paintPicture(QPainter& painter, const QRectF& area, double zoom) {
  if (!m_scene) return;
  const LegendDrawing legend = pictureLegend();
  const double top = legend.size().height();
  painter.fillRect(area, m_theme.ground);
  const QRectF below = area.translated(0, -top).intersected(m_scene->bounds());
  if (!below.isEmpty()) {
    painter.save();
    painter.translate(0, top);
    const PaintStyle style = paintStyle();
    ScenePainter(style, *m_scene, zoom).paint(painter, below);
    painter.setRenderHint(QPainter::Antialiasing);
    paintMarks(painter, zoom, below);
    painter.restore();
  }
  if (area.top() >= top) return;
  painter.save();
  legend.paint(painter, m_legend->filter());
  painter.restore();
}

QString GraphView::visibleText() const {
  if (!m_scene) return {};
  std::vector<std::pair<double, QString>> lines;
  for (const SceneItem& item : m_scene->items()) {
    const QString indent(item.depth * 2, QLatin1Char(' '));
    QString text;
    if (item.node.isValid()) {
      const NodeLabel& label = m_labels->node(item.node);
      text = label.tail.isEmpty() ? label.title : label.title + QStringLiteral(" (") + label.tail + QLatin1Char(')');
    } else if (item.output >= 0) {
      text = QStringLiteral("→ ") + m_labels->outputTitle(item.output);
    } else {
      text = (item.kind == ItemKind::Frame ? QStringLiteral("▾ ") : QStringLiteral("▸ ")) +
             m_labels->module(item.module, item.lastModule).title;
    }
    lines.emplace_back(item.rect.top(), indent + text);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  QStringList all;
  for (const auto& [y, text] : lines) all << text;
  return all.join(QLatin1Char('\n'));
}

}  // namespace cleave::views
