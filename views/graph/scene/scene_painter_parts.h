#pragma once
/// Shared by the scene painter's parts: the zoom at which things are drawn, and lines of equal width at any zoom.
#include <QPen>

namespace cleave::views {

inline constexpr double kLabelZoom = 0.45;   // below: filled boxes
inline constexpr double kDetailZoom = 0.55;  // from here: shapes, weights, chips
inline constexpr double kCurveZoom = 0.3;    // below: straight pieces

inline QPen hairline(const QColor& color, double width = 1, Qt::PenStyle style = Qt::SolidLine) {
  QPen pen(color, width, style);
  pen.setCosmetic(true);
  return pen;
}

}  // namespace cleave::views
