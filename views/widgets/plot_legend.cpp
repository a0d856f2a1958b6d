#include "views/widgets/plot_legend.h"

#include <QFontMetrics>
#include <QPainter>

namespace cleave::views {

namespace {
constexpr int kSign = 12, kGapAfterSign = 5, kGapAfterName = 14;
}  // namespace

PlotLegend::PlotLegend(const QFont& font) : m_font(font) {}

void PlotLegend::add(QString name, Sign sign) { m_entries.push_back({std::move(name), std::move(sign)}); }

PlotLegend::Sign PlotLegend::swatch(const QColor& color) {
  return [color](QPainter& painter, const QRectF& rect) { painter.fillRect(rect.adjusted(1, 1, -1, -1), color); };
}

int PlotLegend::lineHeight() const { return QFontMetrics(m_font).height() + 4; }

std::vector<QRect> PlotLegend::places(int width) const {
  const QFontMetrics metrics(m_font);
  const int line = lineHeight();
  std::vector<QRect> places;
  int x = 0, y = 0;
  for (const Entry& entry : m_entries) {
    const int needed = kSign + kGapAfterSign + metrics.horizontalAdvance(entry.name) + 2;
    if (x > 0 && x + needed > width) x = 0, y += line;
    places.emplace_back(x, y, needed, line);
    x += needed + kGapAfterName;
  }
  return places;
}

int PlotLegend::heightFor(int width) const {
  const std::vector<QRect> all = places(width);
  return all.empty() ? 0 : all.back().bottom() + 1;
}

void PlotLegend::paint(QPainter& painter, const QRect& rect, const QColor& ink) const {
  const std::vector<QRect> all = places(rect.width());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const QRect place = all[i].translated(rect.topLeft());
    if (place.bottom() > rect.bottom()) return;
    painter.save();
    constexpr int kHalf = kSign / 2;
    m_entries[i].sign(painter, QRectF(place.left(), place.center().y() - kHalf + 1, kSign, kSign));
    painter.restore();
    painter.setFont(m_font);
    painter.setPen(ink);
    painter.drawText(place.adjusted(kSign + kGapAfterSign, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     m_entries[i].name);
  }
}

}  // namespace cleave::views
