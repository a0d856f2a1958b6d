#include "views/graph/view/strips.h"

#include <algorithm>
#include <utility>

namespace cleave::views {
namespace {

constexpr int kLeastDrawing = 96, kMinimapWidth = 96;
constexpr int kLeastWidthWithMinimap = 440;  // in a small window the drawing gets all available room

bool hasMinimap(int width) { return width >= kLeastWidthWithMinimap; }

}  // namespace

Strips::Strips(QWidget* parent, Minimap::PaintScene paint)
    : m_legend(new Legend(parent)), m_minimap(new Minimap(parent, std::move(paint))) {}

void Strips::setTheme(const Theme& theme) {
  m_legend->setTheme(theme);
  m_minimap->setTheme(theme);
}

void Strips::setCounts(const SplitCounts* splits, std::size_t changed) {
  LegendContent content = m_legend->content();
  views::setCounts(content, splits);
  content.changed = changed;
  m_legend->setContent(content);
}

void Strips::setScale(const HeatScale& scale) {
  LegendContent content = m_legend->content();
  content.scale = scale;
  m_legend->setContent(content);
}

int Strips::leastHeight() const { return m_legendHeight + kLeastDrawing; }

QMargins Strips::margins(int width) const { return {0, m_legendHeight, hasMinimap(width) ? kMinimapWidth : 0, 0}; }

void Strips::place(const QSize& size) const {
  m_minimap->setVisible(hasMinimap(size.width()));
  m_legend->setGeometry(0, 0, size.width(), m_legendHeight);
  m_minimap->setGeometry(size.width() - kMinimapWidth, m_legendHeight, kMinimapWidth,
                         std::max(0, size.height() - m_legendHeight));
}

}  // namespace cleave::views
