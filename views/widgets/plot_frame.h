#pragma once
/// Where values are in a plot, and what all plots paint alike: axes, stacked bars.
///
///     const QRectF room = PlotAxes::room(rect(), font());
///     const PlotAxes axes(room, PlotAxis::ofBytes(...), PlotAxis::ofTime(...));
///     axes.paint(painter, Theme::of(palette()));
///     painter.drawEllipse(axes.frame.at(bytes, femtoseconds), 3, 3);
#include <QColor>
#include <QPointF>
#include <QRectF>
#include <span>

#include "views/base/fonts.h"
#include "views/widgets/plot_axis.h"

class QFontMetrics;
class QPainter;

namespace cleave::views {

struct Theme;

/// The rectangle of a plot in pixels, and the ranges that it spans: x to the right, y upwards.
struct PlotFrame {
  QRectF rect;
  PlotRange x, y;
  double toX(double value) const { return rect.left() + x.share(value) * rect.width(); }
  double toY(double value) const { return rect.bottom() - y.share(value) * rect.height(); }
  QPointF at(double xValue, double yValue) const { return {toX(xValue), toY(yValue)}; }
  double fromX(double pixel) const;
};

/// Two axes around a plot. `paint` draws grid, ticks, labels and titles; the y axis's title is in the row above the
/// plot, or, for an axis without a name, its unit is below.
struct PlotAxes {
  PlotAxis x, y;
  PlotFrame frame;
  double stripHeight = 0;

  PlotAxes(const QRectF& plot, PlotAxis across, PlotAxis up, double strip = 0);
  /// The plot's rectangle in a widget: less titles, labels, and a strip below the labels.
  static QRectF room(const QRectF& widget, const QFont& font, double stripHeight = 0);
  static int ticksAcross(const QRectF& plot);                 ///< at most, so that labels do not touch
  static int ticksUp(const QRectF& plot, const QFont& font);  ///< the same for the y axis
  QRectF strip(const QFont& font) const;                      ///< the strip below the labels
  /// The right end of the y axis's title in the row above the plot, with a gap.
  double titleEnd(const QFontMetrics& metrics) const;
  void paint(QPainter& painter, const Theme& theme) const;

 private:
  void paintTicks(QPainter& painter, const Theme& theme) const;
};

/// The rectangle of a label, centred at `centre` but within `left` and `right`.
QRectF placeLabel(double centre, const QSizeF& size, double top, double left, double right);

/// A part of a stacked bar.
struct PlotPart {
  double amount = 0;
  QColor color;
};
/// The parts one after the other on a sunken ground. The bar is `most` long.
void paintStack(QPainter& painter, const Theme& theme, const QRectF& bar, double most, std::span<const PlotPart> parts);

}  // namespace cleave::views
