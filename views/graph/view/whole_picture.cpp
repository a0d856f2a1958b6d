#include "views/graph/view/whole_picture.h"

#include <algorithm>
#include <cmath>

namespace cleave::views {

/// The legend is as wide as the drawing, but at least wide enough to read.
WholePicture::WholePicture(const PaintStyle& style, const DrawnGraph& drawn, const LegendContent& content)
    : m_style(style), m_drawn(drawn), m_legend(style.theme, drawn.metrics().small) {
  constexpr int kLeastWidth = 420;
  m_legend.setContent(content);
  const int width = std::max(kLeastWidth, static_cast<int>(std::ceil(drawn.scene()->bounds().width())));
  m_legend.arrange({width, m_legend.heightFor(width)}, 0, {});
}

QSizeF WholePicture::size() const {
  const QSizeF legend = m_legend.size(), scene = m_drawn.scene()->bounds().size();
  return {std::max(legend.width(), scene.width()), legend.height() + scene.height()};
}

void WholePicture::paint(QPainter& painter, const QRectF& area, double zoom, const Marks& marks, const Hover& hover,
                         const SelectedBox& selected) const {
  const double top = m_legend.size().height();
  painter.fillRect(area, m_style.theme.ground);
  const QRectF below = area.translated(0, -top).intersected(m_drawn.scene()->bounds());
  if (!below.isEmpty()) {
    painter.save();
    painter.translate(0, top);
    ScenePainter(m_style, *m_drawn.scene(), zoom).paint(painter, below);
    painter.setRenderHint(QPainter::Antialiasing);
    MarksPainter(m_style, m_drawn, zoom, below).paint(painter, marks, hover, selected);
    painter.restore();
  }
  if (area.top() >= top) return;
  painter.save();
  m_legend.paint(painter, m_style.filter);
  painter.restore();
}

}  // namespace cleave::views
