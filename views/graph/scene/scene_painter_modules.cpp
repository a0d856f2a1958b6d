// Frames and folded modules of the canvas.
#include <QPainterPath>
#include <algorithm>

#include "views/graph/scene/scene_painter.h"
#include "views/graph/scene/scene_painter_parts.h"
#include "views/graph/scene/split_bar.h"

namespace cleave::views {

void ScenePainter::drawFrame(QPainter& painter, const SceneItem& item) {
  const double h = hair() / 2;
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(sheet(item));
  painter.drawRoundedRect(item.rect.adjusted(h, h, -h, -h), m_metrics.radius, m_metrics.radius);
}

void ScenePainter::drawFrameHeader(QPainter& painter, const SceneItem& item) {
  const Metrics& m = m_metrics;
  const QRectF r = header(item, m);
  const double h = hair() / 2;
  QPainterPath top;  // rounded above, square below
  top.setFillRule(Qt::WindingFill);
  top.addRoundedRect(r.adjusted(h, h, -h, 0), m.radius, m.radius);
  top.addRect(r.adjusted(h, r.height() / 2, -h, 0));
  painter.fillPath(top, m_theme.groundSunken);
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(item.rect.adjusted(h, h, -h, -h), m.radius, m.radius);
  const ModuleLabel& label = m_style.labels->module(item.module, item.module);
  const double height = r.height() * m_zoom;
  if (m_zoom < kLabelZoom) {
    if (height >= 6)
      drawScreenText(painter, r.adjusted(m.pad / 2, 0, -m.pad, 0), m.strong, std::clamp(height - 1, 8.0, 10.0),
                     m_theme.text, Qt::AlignVCenter, label.title);
    return;
  }
  double x = r.left() + m.pad;
  painter.setFont(m.strong);
  painter.setPen(m_theme.text);
  painter.drawText(QRectF(x, r.top(), r.width(), r.height()), Qt::AlignVCenter, label.title);
  x += m.strongMetrics.horizontalAdvance(label.title) + m.pad;
  const QRectF button = foldButton(item, m);
  const ModuleTally& tally = m_style.board->tally(item.module);
  const QRectF row(x, r.top(), button.left() - m.pad - x, r.height());
  const QString counts = m_style.heat ? moduleAmount(item) : label.counts;
  const double used =
      drawCounts(painter, row, tally, item.isSimplified ? counts + QStringLiteral(" · simplified") : counts);
  const double room = row.width() - used - m.pad;
  if (!label.kind.isEmpty() && m.smallMetrics.horizontalAdvance(label.kind) <= room) {
    painter.setFont(m.small);
    painter.setPen(m_theme.textQuiet);
    painter.drawText(QRectF(x, r.top(), room, r.height()), Qt::AlignVCenter, label.kind);
    x += m.smallMetrics.horizontalAdvance(label.kind) + m.pad;
  }
  const double barRoom = row.right() - used - m.pad - x;
  if (barRoom >= 40 * m.scale) {
    const double width = std::min(barRoom, 120 * m.scale);
    drawBar(painter, QRectF(row.right() - used - m.pad - width, r.center().y() - 3.5 * m.scale, width, 7 * m.scale),
            item, tally);
  }
  drawButton(painter, button, true);
}

void ScenePainter::drawBlock(QPainter& painter, const SceneItem& item) {
  const QRectF r = item.rect;
  const double height = r.height() * m_zoom, width = r.width() * m_zoom, h = hair();
  const ModuleTally tally = item.kind == ItemKind::Stack ? m_style.board->tally(item.module, item.lastModule)
                                                         : m_style.board->tally(item.module);
  painter.setRenderHint(QPainter::Antialiasing, false);
  QString title = m_style.labels->module(item.module, item.lastModule).title;
  if (const QString amount = moduleAmount(item); !amount.isEmpty()) title += QStringLiteral("  ") + amount;
  painter.fillRect(r, m_theme.groundSunken);
  if (height < 9 || width < 30) {
    drawBar(painter, r, item, tally);
  } else if (height < 17) {  // one row: name, bar
    const double half = r.width() * 0.55;
    drawScreenText(painter, r.adjusted(3 * h, 0, half - r.width(), 0), m_metrics.strong,
                   std::clamp(height * 0.7, 8.0, 10.0), m_theme.text, Qt::AlignVCenter, title);
    drawBar(painter, QRectF(r.left() + half, r.top() + 3 * h, r.width() - half - 3 * h, r.height() - 6 * h), item,
            tally);
  } else {
    const double bar = std::clamp(height * 0.3, 4.0, 9.0) * h;
    drawBar(painter, QRectF(r.left() + 3 * h, r.bottom() - bar - 3 * h, r.width() - 6 * h, bar), item, tally);
    drawScreenText(painter, r.adjusted(4 * h, 0, -2 * h, -bar - 2 * h), m_metrics.strong,
                   std::clamp(height * 0.5, 8.0, 11.0), m_theme.text, Qt::AlignVCenter, title);
  }
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(r.adjusted(0, 0, -h, -h));
  if (tally.conflicts > 0) conflict(painter, item);
  painter.setRenderHint(QPainter::Antialiasing, m_zoom >= kCurveZoom);
}

void ScenePainter::drawFolded(QPainter& painter, const SceneItem& item) {
  if (m_zoom < kLabelZoom) return drawBlock(painter, item);
  const Metrics& m = m_metrics;
  const QRectF r = card(item, m);
  const double h = hair() / 2;
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(item.depth % 2 == 0 ? m_theme.groundRaised : m_theme.ground);
  if (item.kind == ItemKind::Stack)
    for (int i = 2; i > 0; --i)
      painter.drawRoundedRect(r.translated(i * m.sheetOffset, i * m.sheetOffset).adjusted(h, h, -h, -h), m.radius,
                              m.radius);
  painter.drawRoundedRect(r.adjusted(h, h, -h, -h), m.radius, m.radius);

  const ModuleLabel& label = m_style.labels->module(item.module, item.lastModule);
  const ModuleTally tally = m_style.board->tally(item.module, item.lastModule);
  const QRectF head = header(item, m);
  const QRectF button = foldButton(item, m);
  double right = button.left() - m.pad;
  drawButton(painter, button, false);
  if (item.kind == ItemKind::Stack) {
    const QRectF list = listButton(item, m);
    painter.setPen(hairline(m_theme.textQuiet));
    for (const double part : {0.25, 0.5, 0.75})
      painter.drawLine(QPointF(list.left() + 2, list.top() + list.height() * part),
                       QPointF(list.right() - 2, list.top() + list.height() * part));
    const auto count =
        m_style.model->module(item.lastModule).listIndex - m_style.model->module(item.module).listIndex + 1;
    const QString times = QStringLiteral("×%1").arg(count);
    const double width = m.labelMetrics.horizontalAdvance(times) + m.pad * 1.5;
    const QRectF pill(list.left() - m.pad - width, head.center().y() - 8 * m.scale, width, 16 * m.scale);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.accent);
    painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2);
    painter.setPen(m_theme.onAccent);
    painter.setFont(m.label);
    painter.drawText(pill, Qt::AlignCenter, times);
    right = pill.left() - m.pad;
  }
  const double left = head.left() + m.pad;
  const bool isCompact = m_style.labels->isCompact(item.module, item.lastModule);
  painter.setFont(m.strong);
  painter.setPen(m_theme.text);
  const QString title = elided(m.strongMetrics, label.title, right - left);
  painter.drawText(QRectF(left, head.top(), right - left, head.height()), Qt::AlignVCenter, title);
  const double after = left + m.strongMetrics.horizontalAdvance(title) + m.pad;
  if (m_zoom >= kDetailZoom && !isCompact && !label.kind.isEmpty() &&
      after + m.smallMetrics.horizontalAdvance(label.kind) <= right) {
    painter.setFont(m.small);
    painter.setPen(m_theme.textQuiet);
    painter.drawText(QRectF(after, head.top() + 0.5, right - after, head.height()), Qt::AlignVCenter, label.kind);
  }
  const QRectF row = isCompact ? QRectF(after, head.top(), right - after, head.height())
                               : QRectF(r.left() + m.pad, head.bottom() - 3 * m.scale, r.width() - 2 * m.pad, m.row);
  QString counts = m_style.heat ? moduleAmount(item) : label.counts;
  if (const auto unlike = m_style.heat ? 0 : m_style.board->unlike(item.module, item.lastModule); unlike > 0)
    counts = QStringLiteral("%1 differ  ·  %2").arg(unlike).arg(counts);
  const double used = m_zoom >= kDetailZoom ? drawCounts(painter, row, tally, counts) : 0;
  drawBar(
      painter,
      QRectF(row.left(), row.center().y() - 3.5 * m.scale, row.width() - used - (used > 0 ? m.pad : 0), 7 * m.scale),
      item, tally);
  if (m_zoom >= kDetailZoom && !isCompact) drawChips(painter, r, label.hubs, r.top() + m.header + m.row + 2 * m.scale);
  if (tally.conflicts > 0) conflict(painter, item);
}

/// Numbers at the right end of a row. Returns their width.
double ScenePainter::drawCounts(QPainter& painter, const QRectF& row, const ModuleTally& tally, const QString& counts) {
  const Metrics& m = m_metrics;
  double x = row.right() - m.smallMetrics.horizontalAdvance(counts);
  painter.setFont(m.small);
  painter.setPen(m_theme.textQuiet);
  painter.drawText(QRectF(x, row.top(), row.right() - x + 1, row.height()), Qt::AlignVCenter, counts);
  const double glyph = 11 * m.scale;
  const auto add = [&](const QString& text, const QColor& color, auto&& drawSign) {
    x -= m.smallMetrics.horizontalAdvance(text) + m.pad * 1.25;
    painter.setPen(color);
    painter.drawText(QRectF(x, row.top(), row.width(), row.height()), Qt::AlignVCenter, text);
    x -= glyph + 2 * m.scale;
    drawSign(QRectF(x, row.center().y() - glyph / 2, glyph, glyph));
  };
  if (tally.collectives > 0) {
    add(countText(tally.collectives), m_theme.text,
        [&](const QRectF& square) { drawCollective(painter, square, rules::CollectiveKind::AllReduce, m_theme.text); });
  }
  if (tally.conflicts > 0) {
    add(countText(tally.conflicts), m_theme.text, [&](const QRectF& square) {
      painter.setPen(QPen(m_theme.conflict, 2 * m.scale));
      const QRectF s = square.adjusted(2, 2, -2, -2);
      painter.drawLine(s.topLeft(), s.bottomRight());
      painter.drawLine(s.topRight(), s.bottomLeft());
    });
  }
  return row.right() - x;
}

QString ScenePainter::moduleAmount(const SceneItem& module) const {
  return m_style.heat ? m_style.heat->label(module.module, module.lastModule) : QString();
}

void ScenePainter::drawBar(QPainter& painter, const QRectF& bar, const SceneItem& module, const ModuleTally& tally) {
  if (bar.width() <= 0) return;
  if (m_style.heat) {
    const auto amount = m_style.heat->of(module.module, module.lastModule);
    painter.fillRect(bar, m_style.heat->color(m_theme, amount));
  } else {
    const bool isPlain = bar.height() * m_zoom < 5;
    paintSplitBar(painter, bar, tally.split, m_theme, isPlain ? 0 : 4 * hair() * std::max(1.0, m_zoom), m_style.filter);
  }
  outlineBar(painter, bar);
}

void ScenePainter::outlineBar(QPainter& painter, const QRectF& bar) const {
  if (bar.height() * m_zoom < 5) return;
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(Qt::NoBrush);
  const double h = hair() / 2;
  painter.drawRect(bar.adjusted(h, h, -h, -h));
}

void ScenePainter::drawButton(QPainter& painter, const QRectF& rect, bool isOpen) {
  const double h = hair() / 2;
  painter.setPen(hairline(m_theme.borderStrong));
  painter.setBrush(m_theme.ground);
  painter.drawRoundedRect(rect.adjusted(h, h, -h, -h), 3, 3);
  painter.setPen(hairline(m_theme.text, std::max(1.0, 1.2 * m_zoom)));
  const double arm = rect.width() * 0.25;
  const QPointF c = rect.center();
  painter.drawLine(c - QPointF(arm, 0), c + QPointF(arm, 0));
  if (!isOpen) painter.drawLine(c - QPointF(0, arm), c + QPointF(0, arm));
}

}  // namespace cleave::views
