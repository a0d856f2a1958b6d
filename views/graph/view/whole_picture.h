#pragma once
/// The whole drawing with its legend above, for files and printers.
///
///     const WholePicture picture(style, drawn, legend.content());
///     picture.paint(painter, QRectF({}, picture.size()), 1, marks, selected);
#include <QPainter>
#include <QRectF>
#include <QSizeF>

#include "views/graph/scene/legend_drawing.h"
#include "views/graph/view/marks_painter.h"

namespace cleave::views {

class WholePicture {
 public:
  /// `style` and `drawn` outlive it; `drawn` has a scene.
  WholePicture(const PaintStyle& style, const DrawnGraph& drawn, const LegendContent& content);
  QSizeF size() const;  ///< at 100 %
  /// Paints the part `area` (100 %). The painter maps it to a device with `zoom` pixels per unit.
  void paint(QPainter& painter, const QRectF& area, double zoom, const Marks& marks, const Hover& hover,
             const SelectedBox& selected) const;

 private:
  const PaintStyle& m_style;
  const DrawnGraph& m_drawn;
  LegendDrawing m_legend;
};

}  // namespace cleave::views
