// Operators, lines and marks of the canvas.
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "rules/strategy_collectives.h"
#include "views/graph/scene/fills.h"
#include "views/graph/scene/scene_painter.h"
#include "views/graph/scene/scene_painter_parts.h"

namespace cleave::views {
namespace {

constexpr double kSplitStrip = 16;  ///< width of the layer's pattern, left of its title
constexpr double kNameZoom = 0.24, kArrowZoom = 0.55;

}  // namespace

void ScenePainter::drawBox(QPainter& painter, const QRectF& rect, const Fill& fill, bool isWholeBand) {
  const Metrics& m = m_metrics;
  const double h = hair() / 2;
  const QRectF r = rect.adjusted(h, h, -h, -h);
  const QRectF band(rect.left(), rect.top(), rect.width(), isWholeBand ? rect.height() : m.band);
  painter.setPen(Qt::NoPen);
  painter.setBrush(fill.color);
  painter.drawRoundedRect(r, m.radius, m.radius);
  const double sides = (isWholeBand ? 2 : 1) * m.radius;
  if (fill.isHatched()) {
    paintFill(painter, band.adjusted(m.radius / 2, m.radius / 2, -m.radius / 2, isWholeBand ? -m.radius / 2 : 0), fill,
              5 * m.scale);
  } else if (fill.tint && !fill.isOpen) {
    const double width = fill.split ? kSplitStrip * m.scale : 6 * m.scale;
    paintFill(painter,
              QRectF(band.left() + 1, band.top() + (fill.split ? 1 : m.radius), width,
                     band.height() - (fill.split ? 1 : sides)),
              fill, (fill.split ? 4 : 3) * m.scale);
  }
  if (!isWholeBand) {
    QPainterPath body;
    body.setFillRule(Qt::WindingFill);
    const QRectF below = QRectF(r.left(), band.bottom(), r.width(), r.bottom() - band.bottom());
    body.addRoundedRect(below, m.radius, m.radius);
    body.addRect(below.adjusted(0, 0, 0, -below.height() / 2));
    painter.fillPath(body, m_theme.dark ? m_theme.groundRaised : m_theme.ground);
  }
  painter.setBrush(Qt::NoBrush);
  painter.setPen(hairline(fill.isOpen ? m_theme.borderStrong : blend(fill.color, m_theme.text, 0.4), 1,
                          fill.isOpen && fill.tint ? Qt::DashLine : Qt::SolidLine));
  painter.drawRoundedRect(r, m.radius, m.radius);
  if (fill.isOpen && !isWholeBand)
    painter.drawLine(QPointF(r.left(), band.bottom()), QPointF(r.right(), band.bottom()));
}

double ScenePainter::chipWidth(const QString& text) const {
  if (text.isEmpty()) return 0;
  return std::max(20 * m_metrics.scale, m_metrics.smallMetrics.horizontalAdvance(text) + 9 * m_metrics.scale);
}

/// On a layer's head the chip has the colour of its result's placement; on other boxes the band has it.
void ScenePainter::drawChip(QPainter& painter, const QRectF& band, const Fill& fill) {
  if (fill.chip.isEmpty()) return;
  const Metrics& m = m_metrics;
  const double width = chipWidth(fill.chip);
  const QRectF pill(band.right() - 4 * m.scale - width, band.center().y() - 7.5 * m.scale, width, 15 * m.scale);
  const QColor ground = fill.split && fill.tint ? m_theme.color(*fill.tint) : m_theme.ground;
  painter.setPen(fill.split ? hairline(m_theme.ground) : QPen(Qt::NoPen));
  painter.setBrush(ground);
  painter.drawRoundedRect(pill, 4 * m.scale, 4 * m.scale);
  QFont font = m.small;
  font.setWeight(QFont::DemiBold);
  painter.setFont(font);
  painter.setPen(m_theme.textOn(ground));
  painter.drawText(pill, Qt::AlignCenter, fill.chip);
}

/// A filled box with its name, while the name is readable.
void ScenePainter::drawFarNode(QPainter& painter, const SceneItem& item, const Fill& fill) {
  const QRectF& r = item.rect;
  if (fill.isOpen) {
    painter.fillRect(r, m_theme.ground);
    painter.setPen(hairline(m_theme.borderStrong, 1, fill.tint ? Qt::DashLine : Qt::SolidLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(r.adjusted(0, 0, -hair(), -hair()));
  } else if (m_zoom > kNameZoom) {
    paintFill(painter, r, fill, 5 * hair());
  } else {
    painter.fillRect(r, fill.color);
  }
  if (m_zoom <= kNameZoom) return;
  const double height = r.height() * m_zoom;
  const NodeLabel& label = m_style.labels->node(item.node);
  const double pixels = std::clamp(height * 0.75, 8.0, 10.0);
  const bool isNamed = !label.tail.isEmpty() && (label.isLayer || height >= 16);
  const QString& name = isNamed ? label.tail : label.title;
  const double width =
      QFontMetricsF(m_metrics.label).horizontalAdvance(name) * pixels / m_metrics.label.pixelSize() / m_zoom +
      4 * hair();
  QRectF plate(0, 0, std::min(width, r.width()), std::min(r.height(), pixels * 1.3 * hair()));
  plate.moveCenter(r.center());
  if (!fill.isOpen) painter.fillRect(plate, fill.color);
  drawScreenText(painter, r, m_metrics.label, pixels, m_theme.textOn(fill.color), Qt::AlignCenter, name);
}

void ScenePainter::drawNode(QPainter& painter, const SceneItem& item) {
  const Fill fill = fillOf(item);
  painter.setOpacity(fill.isDimmed ? 0.25 : 1);
  if (m_zoom < kDetailZoom)
    drawFarNode(painter, item, fill);
  else
    drawNearNode(painter, item, fill);
  painter.setOpacity(1);
  if (item.node.isValid() && m_style.board->isConflict(item.node)) conflict(painter, item);
}

void ScenePainter::drawNearNode(QPainter& painter, const SceneItem& item, const Fill& fill) {
  const Metrics& m = m_metrics;
  const QRectF& r = item.rect;
  drawBox(painter, r, fill, false);
  const NodeLabel& label = m_style.labels->node(item.node);
  const QRectF band(r.left(), r.top(), r.width(), m.band);
  const double left =
      band.left() + m.pad + (fill.split && !fill.isOpen && !fill.isHatched() ? kSplitStrip : 2) * m.scale;
  const double chip = fill.chip.isEmpty() ? 0 : chipWidth(fill.chip) + 4 * m.scale;
  drawTitle(painter, QRectF(left, band.top(), band.right() - 4 * m.scale - chip - left, band.height()), item, fill);
  drawChip(painter, band, fill);
  const QRectF row(r.left() + m.pad, band.bottom(), r.width() - 2 * m.pad, m.row);
  const double shapeWidth = m.digitsMetrics.horizontalAdvance(label.shape);
  const bool isAlone = label.tail.isEmpty() && !label.isLayer;
  double taken = 0;
  if (label.isLayer) {
    taken = drawNotch(painter, row, item, fill);
  } else {
    painter.setFont(m.small);
    painter.setPen(m_theme.text);
    painter.drawText(row, Qt::AlignVCenter | Qt::AlignLeft,
                     elided(m.smallMetrics, label.tail, row.width() - shapeWidth - m.pad));
  }
  painter.setFont(m.digits);
  painter.setPen(isAlone ? m_theme.text : m_theme.textQuiet);
  painter.drawText(row, Qt::AlignVCenter | (isAlone ? Qt::AlignHCenter : Qt::AlignRight),
                   elided(m.digitsMetrics, label.shape, row.width() - taken));
  drawDocks(painter, r, label, row.bottom());
  drawChips(painter, r, label.hubs, row.bottom() + m.row * static_cast<double>(label.docks.size()));
  badges(painter, item);
}

/// A layer by its own name, followed by the operator in small type; any other box by its operator.
void ScenePainter::drawTitle(QPainter& painter, const QRectF& room, const SceneItem& item, const Fill& fill) {
  const Metrics& m = m_metrics;
  const NodeLabel& label = m_style.labels->node(item.node);
  const bool isNamed = label.isLayer && !label.tail.isEmpty();
  const bool isStrong = isNamed || item.kind == ItemKind::Input;
  const QFontMetricsF& metrics = isStrong ? m.strongMetrics : m.labelMetrics;
  painter.setFont(isStrong ? m.strong : m.label);
  painter.setPen(m_theme.textOn(fill.color));
  const QString title = elided(metrics, isNamed ? label.tail : label.title, room.width());
  painter.drawText(room, Qt::AlignVCenter, title);
  const double left = room.left() + metrics.horizontalAdvance(title) + m.pad * 0.75;
  if (!isNamed || left + m.smallMetrics.horizontalAdvance(label.title) > room.right() + 1) return;
  painter.setFont(m.small);
  painter.drawText(QRectF(left, room.top() + 0.5, room.right() - left + 1, room.height()), Qt::AlignVCenter,
                   label.title);
}

/// Below a layer's head: its strategy's word, its input and output placements, and its collective. Returns the width.
double ScenePainter::drawNotch(QPainter& painter, const QRectF& row, const SceneItem& item, const Fill& fill) {
  const Metrics& m = m_metrics;
  const SplitCounts& counts = m_style.board->counts();
  const auto strategy = counts.strategy(item.node);
  const LayerSplit split = counts.split(item.node);
  double x = row.left();
  const auto write = [&](const QFont& font, const QFontMetricsF& metrics, const QColor& color, const QString& text) {
    painter.setFont(font);
    painter.setPen(color);
    painter.drawText(QRectF(x, row.top(), row.right() - x + 1, row.height()), Qt::AlignVCenter, text);
    x += metrics.horizontalAdvance(text) + 5 * m.scale;
  };
  write(m.small, m.smallMetrics, split == LayerSplit::Open ? m_theme.textQuiet : m_theme.text, strategyText(split));
  if (!strategy) return x - row.left();
  const auto sign = [&](rules::CollectiveKind kind) {
    const double side = 10 * m.scale;
    drawCollective(painter, QRectF(x, row.center().y() - side / 2, side, side), kind, m_theme.text);
    x += side + 3 * m.scale;
  };
  if (const auto before = rules::collectiveBefore(*strategy)) sign(*before);
  const ValueId input = counts.layer(item.node)->input;
  const QString result = fill.chip.isEmpty() ? chipText(placementOf(item)) : fill.chip;
  write(m.digits, m.digitsMetrics, m_theme.textQuiet,
        QStringLiteral("%1 → %2").arg(chipText(m_style.board->of(input)),
                                      m_style.heat ? chipText(placementOf(item)) : result));
  if (const auto after = rules::collectiveAfter(*strategy)) sign(*after);
  return x - row.left();
}

void ScenePainter::drawOutput(QPainter& painter, const SceneItem& item) {
  const Fill fill = fillOf(item);
  if (m_zoom < kLabelZoom) return painter.fillRect(item.rect, fill.isOpen ? m_theme.borderStrong : fill.color);
  drawBox(painter, item.rect, fill, true);
  painter.setFont(m_metrics.strong);
  painter.setPen(m_theme.textOn(fill.color));
  painter.drawText(item.rect.adjusted(m_metrics.pad + 2, 0, 0, 0), Qt::AlignVCenter,
                   m_style.labels->outputTitle(item.output));
  drawChip(painter, item.rect, fill);
}

QString ScenePainter::dockText(const DockLabel& dock) const {
  const MaybePlacement& placement = m_style.board->of(dock.value);
  const int ranks = m_style.board->counts().ranks();
  if (!placement || !placement->isSplit() || ranks < 2) return dock.shape;
  const auto local = placement->localShape(m_style.model->graph().shapeOf(dock.value), ranks);
  const auto dim = static_cast<std::size_t>(placement->firstDim());
  if (!local || dim >= local->size()) return dock.shape;
  return QStringLiteral("%1 → %2 per rank").arg(dock.shape).arg((*local)[dim]);
}

void ScenePainter::drawDocks(QPainter& painter, const QRectF& rect, const NodeLabel& label, double top) {
  const Metrics& m = m_metrics;
  for (const DockLabel& dock : label.docks) {
    const QRectF row(rect.left() + 1, top, rect.width() - 2, m.row);
    painter.setPen(hairline(m_theme.border));
    painter.drawLine(row.topLeft(), row.topRight());
    const MaybePlacement& placement = m_style.board->of(dock.value);
    const QRectF swatch(row.left() + m.pad - 1, row.center().y() - 4 * m.scale, 8 * m.scale, 8 * m.scale);
    const int ranks = m_style.board->counts().ranks();
    if (placement) fillTint(painter, swatch, m_theme, tintOf(placement, ranks), 3 * m.scale);
    painter.setPen(
        hairline(placement ? blend(m_theme.placementColor(placement, ranks), m_theme.text, 0.4) : m_theme.borderStrong,
                 1, placement ? Qt::SolidLine : Qt::DashLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(swatch);
    const QString text = dockText(dock);
    const double shapeWidth = m.digitsMetrics.horizontalAdvance(text);
    const double left = swatch.right() + 5 * m.scale, room = row.right() - m.pad - left;
    painter.setFont(m.small);
    painter.setPen(m_theme.textQuiet);
    painter.drawText(QRectF(left, row.top(), room, row.height()), Qt::AlignVCenter,
                     elided(m.smallMetrics, dock.name, room - shapeWidth - m.pad));
    painter.setFont(m.digits);
    painter.setPen(m_theme.text);
    painter.drawText(QRectF(left, row.top(), room, row.height()), Qt::AlignVCenter | Qt::AlignRight,
                     elided(m.digitsMetrics, text, room));
    top += m.row;
  }
}

void ScenePainter::drawChips(QPainter& painter, const QRectF& rect, const std::vector<HubLabel>& hubs, double top) {
  if (hubs.empty()) return;
  const Metrics& m = m_metrics;
  const auto rects = m_style.labels->chipRects(hubs, rect.width());
  for (std::size_t i = 0; i < hubs.size(); ++i) {
    const QRectF chip = rects[i].translated(rect.left(), top);
    const MaybePlacement& placement = m_style.board->of(hubs[i].value);
    painter.setPen(hairline(m_theme.borderStrong));
    painter.setBrush(hubs[i].isMade ? m_theme.groundSunken : m_theme.ground);
    painter.drawRoundedRect(chip, chip.height() / 2, chip.height() / 2);
    // A triangle pointing in (read here) or out (made here), in the placement's colour.
    const double side = 6 * m.scale, y = chip.center().y();
    const double x = hubs[i].isMade ? chip.right() - side - 5 * m.scale : chip.left() + 5 * m.scale;
    painter.setPen(hairline(m_theme.textQuiet));
    painter.setBrush(placement ? QBrush(m_theme.placementColor(placement, m_style.board->counts().ranks()))
                               : QBrush(Qt::NoBrush));
    painter.drawPolygon(QPolygonF{{x, y - side / 2}, {x + side, y}, {x, y + side / 2}});
    painter.setFont(m.small);
    painter.setPen(m_theme.text);
    const QRectF words =
        chip.adjusted(hubs[i].isMade ? 7 * m.scale : 14 * m.scale, 0, hubs[i].isMade ? -13 * m.scale : -5 * m.scale, 0);
    painter.drawText(words, Qt::AlignVCenter | Qt::AlignLeft, elided(m.smallMetrics, hubs[i].name, words.width() + 1));
  }
}

void ScenePainter::badges(QPainter& painter, const SceneItem& item) const {
  const auto* badges = m_zoom >= kDetailZoom ? m_style.board->collectives(item.node) : nullptr;
  if (!badges) return;
  const Metrics& m = m_metrics;
  const double glyph = 11 * m.scale, height = 16 * m.scale;
  double width = 0;
  for (const CollectiveBadge& badge : *badges)
    width += glyph + m.smallMetrics.horizontalAdvance(bytesText(badge.bytes)) + 13 * m.scale;
  double x = item.rect.center().x() - width / 2;
  const double y = item.rect.bottom() + 5 * m.scale;
  for (const CollectiveBadge& badge : *badges) {
    const QString text = bytesText(badge.bytes);
    const QRectF pill(x, y, glyph + m.smallMetrics.horizontalAdvance(text) + 11 * m.scale, height);
    painter.setPen(hairline(m_theme.accent));
    painter.setBrush(m_theme.ground);
    painter.drawRoundedRect(pill, height / 2, height / 2);
    drawCollective(painter, QRectF(pill.left() + 4 * m.scale, pill.center().y() - glyph / 2, glyph, glyph), badge.kind,
                   m_theme.text);
    painter.setFont(m.small);
    painter.setPen(m_theme.text);
    painter.drawText(pill.adjusted(glyph + 6 * m.scale, 0, 0, 0), Qt::AlignVCenter, text);
    x += pill.width() + 2 * m.scale;
  }
}

// ---- lines

void ScenePainter::drawEdge(QPainter& painter, const SceneEdge& edge, const QPen& pen) const {
  const auto points = m_scene.points(edge);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  if (m_zoom < kCurveZoom) {
    for (std::size_t i = 3; i < points.size(); i += 3) painter.drawLine(points[i - 3], points[i]);
    return;
  }
  const bool hasArrow = edge.to != SceneItem::kNone && m_zoom >= kArrowZoom;
  const double size = 5.5 * m_metrics.scale;
  const QPointF tip = points.back();
  QPainterPath path(points[0]);
  for (std::size_t i = 1; i + 2 < points.size(); i += 3) {
    const bool isLast = i + 3 == points.size();
    path.cubicTo(points[i], points[i + 1], isLast && hasArrow ? tip - QPointF(0, size * 0.8) : points[i + 2]);
  }
  painter.drawPath(path);
  painter.setPen(Qt::NoPen);
  painter.setBrush(pen.color());
  if (hasArrow)
    painter.drawPolygon(
        QPolygonF{tip, tip + QPointF(-size * 0.6, -size * 1.25), tip + QPointF(size * 0.6, -size * 1.25)});
  if (edge.from == SceneItem::kNone) painter.drawEllipse(points[0], 2.5, 2.5);
}

void ScenePainter::edge(QPainter& painter, const SceneEdge& edge, const QColor& color, double width) const {
  drawEdge(painter, edge, hairline(color, width));
}

void ScenePainter::edgeLabel(QPainter& painter, const SceneEdge& edge) const {
  const auto values = m_scene.values(edge);
  const auto points = m_scene.points(edge);
  if (values.empty() || points.size() < 4) return;
  const QString text = values.size() == 1 ? shapeText(m_style.model->graph().shapeOf(values[0]))
                                          : countedText(values.size(), QStringLiteral("value"));
  const Metrics& m = m_metrics;
  const QSizeF size(m.digitsMetrics.horizontalAdvance(text) + 4, 13 * m.scale);
  const QRectF plate(points[0] + QPointF(7, 4), size);  // next to the start of the line, on a plate of its own
  QColor ground = edge.frame == SceneItem::kNone ? m_theme.ground : sheet(m_scene.items()[edge.frame]);
  ground.setAlpha(225);
  painter.fillRect(plate, ground);
  painter.setFont(m.digits);
  painter.setPen(m_theme.textQuiet);
  painter.drawText(plate, Qt::AlignCenter, text);
}

// ---- marks

void ScenePainter::ring(QPainter& painter, const SceneItem& item, const QColor& color, double width, double gap) const {
  painter.setPen(hairline(color, width));
  painter.setBrush(Qt::NoBrush);
  const double by = (gap + width / 2) * hair();
  painter.drawRoundedRect(item.rect.adjusted(-by, -by, by, by), m_metrics.radius + by, m_metrics.radius + by);
}

void ScenePainter::glow(QPainter& painter, const SceneItem& item, const QColor& color) const {
  QColor faint = color;
  faint.setAlpha(70);
  ring(painter, item, faint, 7, 0);
}

void ScenePainter::fade(QPainter& painter, const SceneItem& item) const {
  QColor veil = m_theme.ground;
  veil.setAlpha(150);
  painter.fillRect(item.rect, veil);
}

void ScenePainter::conflict(QPainter& painter, const SceneItem& item) const {
  const QRectF r = card(item, m_metrics);
  const double h = hair();
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(hairline(m_theme.conflict, 2.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(r.adjusted(-h, -h, h, h), m_metrics.radius, m_metrics.radius);
  const double radius = std::min({8.0 * std::max(1.0, m_zoom) * h, r.height() / 2, r.width() / 2});
  if (radius * m_zoom >= 3 && m_zoom > 0.12) {
    const QPointF c = r.topRight();
    painter.setPen(hairline(m_theme.ground, 1.5));
    painter.setBrush(m_theme.conflict);
    painter.drawEllipse(c, radius, radius);
    painter.setPen(QPen(Qt::white, radius * 0.3, Qt::SolidLine, Qt::RoundCap));
    const double arm = radius * 0.4;
    painter.drawLine(c - QPointF(arm, arm), c + QPointF(arm, arm));
    painter.drawLine(c + QPointF(-arm, arm), c + QPointF(arm, -arm));
  }
  painter.restore();
}

void ScenePainter::changed(QPainter& painter, const SceneItem& item) const {
  const QRectF r = card(item, m_metrics);
  const double by = 3 * hair();
  QPen pen = hairline(m_theme.changed, 2.5);
  pen.setDashPattern({3, 2});
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(r.adjusted(-by, -by, by, by), m_metrics.radius + by, m_metrics.radius + by);
  // A delta at the corner, so that the change shows without colour too.
  const double side = 7 * std::max(1.0, m_zoom) * hair();
  if (r.height() < 2 * side) return;
  const QPointF corner = r.topLeft();
  painter.setPen(hairline(m_theme.ground, 1));
  painter.setBrush(m_theme.changed);
  painter.drawPolygon(
      QPolygonF{corner + QPointF(0, -side), corner + QPointF(side, side * 0.7), corner + QPointF(-side, side * 0.7)});
}

void ScenePainter::breakpoint(QPainter& painter, const SceneItem& item) const {
  const double radius = std::max(4.0 * hair(), 5.0);
  painter.setPen(hairline(m_theme.ground, 1.5));
  painter.setBrush(QColor(0xC4, 0x20, 0x20));
  painter.drawEllipse(QPointF(item.rect.left(), item.rect.top() + m_metrics.band / 2), radius, radius);
}

}  // namespace cleave::views
