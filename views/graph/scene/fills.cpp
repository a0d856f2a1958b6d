#include "views/graph/scene/fills.h"

#include <algorithm>

#include "views/graph/scene/scene_painter_parts.h"

namespace cleave::views {
namespace {

/// Lines instead of a brush: they keep their distance at any zoom and work in vector formats.
void fillPattern(QPainter& painter, const QRectF& rect, const QColor& color, const QBrush& pattern, double step) {
  painter.fillRect(rect, color);
  if (pattern.style() == Qt::NoBrush || rect.width() < step) return;
  const QPen before = painter.pen();
  painter.setPen(hairline(pattern.color()));
  const double h = rect.height();
  const auto slanted = [&](bool rising) {
    for (double x = rect.left() - h + step; x < rect.right(); x += step) {
      const double from = std::max(x, rect.left()), to = std::min(x + h, rect.right());
      const double a = rising ? rect.bottom() - (from - x) : rect.top() + (from - x);
      const double b = rising ? rect.bottom() - (to - x) : rect.top() + (to - x);
      painter.drawLine(QPointF(from, a), QPointF(to, b));
    }
  };
  const auto upright = [&] {
    for (double x = rect.left() + step; x < rect.right(); x += step)
      painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()));
  };
  const auto level = [&](double from, double until) {
    for (double y = rect.top() + step; y < rect.bottom(); y += step)
      painter.drawLine(QPointF(from, y), QPointF(until, y));
  };
  switch (pattern.style()) {
    case Qt::BDiagPattern: slanted(true); break;
    case Qt::FDiagPattern: slanted(false); break;
    case Qt::VerPattern: upright(); break;
    case Qt::HorPattern: level(rect.left(), rect.right()); break;
    case Qt::CrossPattern:
    case Qt::Dense6Pattern: upright(), level(rect.left(), rect.right()); break;
    case Qt::Dense4Pattern:  // dashes
      for (double x = rect.left() + step / 2; x + step < rect.right(); x += 2 * step) level(x, x + step);
      break;
    default: slanted(true), slanted(false); break;
  }
  painter.setPen(before);
}

}  // namespace

void fillTint(QPainter& painter, const QRectF& rect, const Theme& theme, Tint tint, double step) {
  fillPattern(painter, rect, theme.color(tint), theme.pattern(tint), step);
}

void fillForm(QPainter& painter, const QRectF& rect, const Theme& theme, LayerSplit split, double step) {
  fillPattern(painter, rect, theme.color(split), theme.pattern(split), step);
}

}  // namespace cleave::views
