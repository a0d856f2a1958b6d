#include "views/widgets/plot_frame.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>

#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr double kSide = 12, kGapAboveLabels = 5, kTick = 4, kEnd = 4;
constexpr int kPixelsPerLabel = 76;  ///< of the x axis, at least
}  // namespace

double PlotFrame::fromX(double pixel) const { return x.at((pixel - rect.left()) / std::max(1.0, rect.width())); }

PlotAxes::PlotAxes(const QRectF& plot, PlotAxis across, PlotAxis up, double strip)
    : x(std::move(across)), y(std::move(up)), frame{plot, x.range(), y.range()}, stripHeight(strip) {}

QRectF PlotAxes::room(const QRectF& widget, const QFont& font, double stripHeight) {
  const QFontMetrics metrics(smallFont(font));
  const double left = metrics.horizontalAdvance(QStringLiteral("000.00")) + kSide;
  return widget.adjusted(left, metrics.height() + 10, -kSide, -(2 * metrics.height() + 10 + stripHeight));
}

int PlotAxes::ticksAcross(const QRectF& plot) { return std::max(1, static_cast<int>(plot.width()) / kPixelsPerLabel); }

int PlotAxes::ticksUp(const QRectF& plot, const QFont& font) {
  return std::max(1, static_cast<int>(plot.height()) / (2 * QFontMetrics(font).height()));
}

QRectF PlotAxes::strip(const QFont& font) const {
  const QRectF& plot = frame.rect;
  return {plot.left(), plot.bottom() + kGapAboveLabels + QFontMetrics(smallFont(font)).height(), plot.width(),
          stripHeight};
}

double PlotAxes::titleEnd(const QFontMetrics& metrics) const {
  return kEnd + metrics.horizontalAdvance(y.title() + QStringLiteral("  "));
}

void PlotAxes::paint(QPainter& painter, const Theme& theme) const {
  const QRectF& plot = frame.rect;
  const double line = painter.fontMetrics().height();
  paintTicks(painter, theme);
  painter.setPen(theme.borderStrong);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  painter.drawLine(plot.topLeft(), plot.bottomLeft());
  const QRectF below(kEnd, plot.bottom() + kGapAboveLabels + line + stripHeight, plot.right() - kEnd, line);
  painter.setPen(theme.text);
  painter.drawText(below, Qt::AlignRight | Qt::AlignTop, x.title());
  if (!y.name().isEmpty())
    painter.drawText(QRectF(kEnd, kEnd, plot.right() - kEnd, line), Qt::AlignLeft | Qt::AlignTop, y.title());
  else if (!y.unit().isEmpty())
    painter.drawText(below, Qt::AlignLeft | Qt::AlignTop, QStringLiteral("in %1").arg(y.unit()));
}

void PlotAxes::paintTicks(QPainter& painter, const Theme& theme) const {
  const QRectF& plot = frame.rect;
  const QFontMetrics metrics = painter.fontMetrics();
  const double line = metrics.height();
  QColor grid = theme.border;
  grid.setAlpha(120);
  for (const double tick : y.ticks()) {
    const double at = frame.toY(tick);
    painter.setPen(QPen(grid, 1, Qt::DotLine));
    painter.drawLine(QPointF(plot.left(), at), QPointF(plot.right(), at));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(0, at - line / 2, plot.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter, y.label(tick));
  }
  for (const double tick : x.ticks()) {
    const double at = frame.toX(tick);
    painter.setPen(theme.borderStrong);
    painter.drawLine(QPointF(at, plot.bottom()), QPointF(at, plot.bottom() + kTick));
    painter.setPen(theme.textQuiet);
    const QString label = x.label(tick);
    painter.drawText(placeLabel(at, {metrics.horizontalAdvance(label) + 2.0, line}, plot.bottom() + kGapAboveLabels, 0,
                                plot.right() + kSide),
                     Qt::AlignCenter, label);
  }
}

QRectF placeLabel(double centre, const QSizeF& size, double top, double left, double right) {
  return {std::max(left, std::min(centre - size.width() / 2, right - size.width())), top, size.width(), size.height()};
}

void paintStack(QPainter& painter, const Theme& theme, const QRectF& bar, double most,
                std::span<const PlotPart> parts) {
  painter.fillRect(bar, theme.groundSunken);
  const PlotFrame frame{bar, {0, most}, {}};
  double amount = 0;
  for (const PlotPart& part : parts) {
    const double left = frame.toX(amount);
    amount += part.amount;
    painter.fillRect(QRectF(left, bar.top(), frame.toX(amount) - left, bar.height()), part.color);
  }
}

}  // namespace cleave::views
