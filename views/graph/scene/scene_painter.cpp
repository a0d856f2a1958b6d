#include "views/graph/scene/scene_painter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "views/base/text.h"
#include "views/graph/scene/fills.h"
#include "views/graph/scene/scene_painter_parts.h"

namespace cleave::views {
namespace {

constexpr double kEdgeLabelZoom = 1.5;
constexpr double kBlockZoom = 0.17;   // below: medium-height frames are blocks
constexpr double kBlockHeight = 150;  // on screen
constexpr double kTinyHeight = 24;    // on screen: a frame below is a block at any zoom

}  // namespace

void drawScreenText(QPainter& painter, const QRectF& world, QFont font, double pixels, const QColor& color, int flags,
                    const QString& text) {
  const QRectF device = painter.worldTransform().mapRect(world);
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(pixels))));
  painter.save();
  painter.resetTransform();
  painter.setFont(font);
  painter.setPen(color);
  painter.drawText(device, flags | Qt::TextDontClip,
                   QFontMetricsF(font).elidedText(text, elideModeOf(text), device.width()));
  painter.restore();
}

void drawCollective(QPainter& painter, const QRectF& square, rules::CollectiveKind kind, const QColor& color) {
  painter.save();
  painter.setPen(QPen(color, square.width() * 0.11, Qt::SolidLine, Qt::RoundCap));
  painter.setBrush(Qt::NoBrush);
  const QRectF r = square.adjusted(1, 1, -1, -1);
  const QPointF c = r.center();
  if (kind == rules::CollectiveKind::AllReduce) {
    painter.drawEllipse(r);
    const double arm = r.width() * 0.28;
    painter.drawLine(c - QPointF(arm, 0), c + QPointF(arm, 0));
    painter.drawLine(c - QPointF(0, arm), c + QPointF(0, arm));
  } else {
    const double sign = kind == rules::CollectiveKind::AllGather ? 1 : -1, half = r.width() / 2, tip = r.width() * 0.22;
    for (const double dy : {-r.height() * 0.24, r.height() * 0.24}) {
      const QPointF head = c + QPointF(sign * half, dy);
      painter.drawLine(c + QPointF(-sign * half, dy), head);
      painter.drawLine(head, head + QPointF(-sign * tip, -tip));
      painter.drawLine(head, head + QPointF(-sign * tip, tip));
    }
  }
  painter.restore();
}

ScenePainter::ScenePainter(const PaintStyle& style, const Scene& scene, double zoom)
    : m_style(style), m_scene(scene), m_theme(style.theme), m_metrics(style.labels->metrics()), m_zoom(zoom) {}

// ---- geometry

QRectF ScenePainter::card(const SceneItem& item, const Metrics& m) {
  const double sheets = item.kind == ItemKind::Stack ? 2 * m.sheetOffset : 0;
  return item.rect.adjusted(0, 0, -sheets, -sheets);
}

QRectF ScenePainter::header(const SceneItem& item, const Metrics& m) {
  const QRectF r = card(item, m);
  return {r.topLeft(), QSizeF(r.width(), m.header)};
}

QRectF ScenePainter::foldButton(const SceneItem& item, const Metrics& m) {
  if (item.kind != ItemKind::Folded && item.kind != ItemKind::Stack && item.kind != ItemKind::Frame) return {};
  const QRectF h = header(item, m);
  return {h.right() - m.pad - m.button, h.center().y() - m.button / 2, m.button, m.button};
}

QRectF ScenePainter::listButton(const SceneItem& item, const Metrics& m) {
  if (item.kind != ItemKind::Stack) return {};
  return foldButton(item, m).translated(-m.button - m.pad * 0.75, 0);
}

const HubLabel* ScenePainter::chipAt(const SceneItem& item, Labels& labels, const QPointF& p) {
  const Metrics& m = labels.metrics();
  const QRectF r = card(item, m);
  const std::vector<HubLabel>* hubs = nullptr;
  double top = 0;
  if (item.kind == ItemKind::Operator) {
    const NodeLabel& label = labels.node(item.node);
    hubs = &label.hubs;
    top = r.top() + m.band + m.row * (1 + static_cast<double>(label.docks.size()));
  } else if (item.kind == ItemKind::Folded || item.kind == ItemKind::Stack) {
    if (labels.isCompact(item.module, item.lastModule)) return nullptr;
    hubs = &labels.module(item.module, item.lastModule).hubs;
    top = r.top() + m.header + m.row + 2 * m.scale;
  }
  if (!hubs) return nullptr;
  const auto rects = labels.chipRects(*hubs, r.width());
  for (std::size_t i = 0; i < rects.size(); ++i)
    if (rects[i].translated(r.left(), top).contains(p)) return &(*hubs)[i];
  return nullptr;
}

QColor ScenePainter::sheet(const SceneItem& item) const {
  return item.depth % 2 == 0 ? m_theme.groundRaised : m_theme.ground;
}

MaybePlacement ScenePainter::placementOf(const SceneItem& item) const {
  const auto& graph = m_style.model->graph();
  if (item.node.isValid() && !graph.node(item.node).results.empty())
    return m_style.board->of(graph.node(item.node).results[0]);
  if (item.output >= 0) return m_style.board->of(graph.outputs[static_cast<std::size_t>(item.output)].value);
  return {};
}

ScenePainter::Fill ScenePainter::fillOf(const SceneItem& item) const {
  Fill fill;
  if (m_style.heat) {
    const auto amount = item.node.isValid() ? m_style.heat->of(item.node) : std::nullopt;
    fill.color = m_style.heat->color(m_theme, amount);
    fill.isOpen = m_style.heat->what() == ColorBy::Error ? !amount : !amount || m_style.heat->fraction(*amount) <= 0;
    if (item.node.isValid()) fill.chip = m_style.heat->label(item.node);
    return fill;
  }
  const MaybePlacement placement = placementOf(item);
  const SplitCounts& counts = m_style.board->counts();
  fill.tint = tintOf(placement, counts.ranks());
  if (placement) fill.chip = chipText(placement);
  if (item.node.isValid() && counts.isLayer(item.node)) {
    fill.split = counts.split(item.node);
    fill.color = m_theme.color(*fill.split);
    fill.isOpen = fill.split == LayerSplit::Open;
  } else {
    fill.color = m_theme.color(*fill.tint);
    fill.isOpen = fill.tint == Tint::Unassigned;
  }
  fill.isDimmed = m_style.filter.dims(fill.split, *fill.tint);
  return fill;
}

void ScenePainter::paintFill(QPainter& painter, const QRectF& rect, const Fill& fill, double step) const {
  if (fill.split)
    fillForm(painter, rect, m_theme, *fill.split, step);
  else if (fill.tint)
    fillTint(painter, rect, m_theme, *fill.tint, step);
  else
    painter.fillRect(rect, fill.color);
}

QString ScenePainter::elided(const QFontMetricsF& metrics, const QString& text, double width) const {
  return metrics.horizontalAdvance(text) <= width ? text : metrics.elidedText(text, elideModeOf(text), width);
}

bool ScenePainter::isCollapsed(const SceneItem& item) const {
  const double height = item.rect.height() * m_zoom;
  return height < kTinyHeight || (m_zoom < kBlockZoom && height < kBlockHeight);
}

bool ScenePainter::isHidden(std::uint32_t frame, const std::vector<std::uint32_t>& collapsed) const {
  if (collapsed.empty()) return false;
  for (; frame != SceneItem::kNone; frame = m_scene.items()[frame].parent)
    if (std::binary_search(collapsed.begin(), collapsed.end(), frame)) return true;
  return false;
}

// ---- everything

void ScenePainter::paint(QPainter& painter, const QRectF& area) {
  const auto& items = m_scene.items();
  std::vector<std::uint32_t> found, shown, collapsed;
  m_scene.itemsIn(area, found);
  for (std::size_t i = 0; i < found.size();) {
    const SceneItem& item = items[found[i]];
    if (!item.rect.adjusted(-8, -8, 8, 24).intersects(area)) {
      ++i;
      continue;
    }
    shown.push_back(found[i]);
    if (item.kind == ItemKind::Frame && isCollapsed(item)) {
      collapsed.push_back(found[i]);
      const auto next = std::lower_bound(found.begin(), found.end(), item.subtreeEnd);
      i = static_cast<std::size_t>(next - found.begin());
    } else {
      ++i;
    }
  }
  const bool smooth = m_zoom >= kCurveZoom;
  painter.setRenderHint(QPainter::Antialiasing, smooth);
  painter.setRenderHint(QPainter::TextAntialiasing, true);
  for (const std::uint32_t i : shown)
    if (items[i].kind == ItemKind::Frame && !std::binary_search(collapsed.begin(), collapsed.end(), i))
      drawFrame(painter, items[i]);

  m_scene.edgesIn(area, found);
  const QPen pen = hairline(m_theme.edge, std::clamp(m_zoom, 1.0, 2.0));
  for (const std::uint32_t e : found) {
    const SceneEdge& edge = m_scene.edges()[e];
    if (edge.bounds.intersects(area) && !isHidden(edge.frame, collapsed)) drawEdge(painter, edge, pen);
  }
  for (const std::uint32_t i : shown) {
    const SceneItem& item = items[i];
    switch (item.kind) {
      case ItemKind::Frame:
        if (std::binary_search(collapsed.begin(), collapsed.end(), i))
          drawBlock(painter, item);
        else
          drawFrameHeader(painter, item);
        break;
      case ItemKind::Folded:
      case ItemKind::Stack: drawFolded(painter, item); break;
      case ItemKind::Output: drawOutput(painter, item); break;
      case ItemKind::Operator:
      case ItemKind::Input: drawNode(painter, item); break;
    }
  }
  if (m_zoom < kEdgeLabelZoom) return;
  std::set<std::pair<std::uint32_t, ValueId>> said;  // a value leaves its source once, for any number of readers
  for (const std::uint32_t e : found) {
    const SceneEdge& edge = m_scene.edges()[e];
    const auto values = m_scene.values(edge);
    const bool isOperator = edge.from != SceneItem::kNone && items[edge.from].node.isValid();  // its box shows the
                                                                                               // shape
    if (!isOperator && !values.empty() && edge.bounds.intersects(area) && said.insert({edge.from, values[0]}).second)
      edgeLabel(painter, edge);
  }
}

void ScenePainter::paintOverview(QPainter& painter) {
  painter.setRenderHint(QPainter::Antialiasing, false);
  const auto& items = m_scene.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const SceneItem& item = items[i];
    if (item.kind == ItemKind::Frame && !isCollapsed(item)) {
      painter.fillRect(item.rect, sheet(item));
      continue;
    }
    // A box smaller than a pixel still shows its colour.
    const QRectF rect(item.rect.topLeft(), item.rect.size().expandedTo(QSizeF(hair(), hair())));
    if (item.node.isValid() || item.output >= 0) {
      const Fill fill = fillOf(item);
      painter.fillRect(rect, fill.isOpen ? m_theme.border : fill.color);
    } else {
      painter.fillRect(rect, m_theme.groundSunken);
      drawBar(painter, rect, item, m_style.board->tally(item.module, item.lastModule));
      i = std::max<std::size_t>(i, item.subtreeEnd - 1);
    }
  }
}

}  // namespace cleave::views
