#include "views/graph/view/cached_picture.h"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace cleave::views {
namespace {

QRect windowOf(const Viewport& view) { return {QPoint(), view.window().toSize()}; }

}  // namespace

std::optional<QRect> CachedPicture::reach(const Viewport& view) const {
  if (m_zoom != view.zoom()) return std::nullopt;
  const QRect window = windowOf(view);
  return window.united(window.translated(moved(view)));
}

const QPixmap& CachedPicture::updated(const Viewport& view, double dpr, const PaintPart& paint) {
  const QRect window = windowOf(view);
  const QSize size = window.size() * dpr;
  if (m_pixmap.size() != size) {
    m_pixmap = QPixmap(size);
    m_pixmap.setDevicePixelRatio(dpr);
    m_stale = window;
  } else if (m_zoom != view.zoom()) {
    m_stale = window;
  } else if (m_offset != view.offset()) {
    shift(view, dpr);
  }
  m_zoom = view.zoom();
  m_offset = view.offset();
  const QRegion stale = std::exchange(m_stale, QRegion()).intersected(window);
  if (stale.isEmpty()) return m_pixmap;
  QPainter painter(&m_pixmap);
  for (const QRect& part : stale) {
    painter.save();
    painter.setClipRect(part);
    paint(painter, part);
    painter.restore();
  }
  return m_pixmap;
}

/// Copies the pixels that stay in the window. The uncovered strips are stale.
void CachedPicture::shift(const Viewport& view, double dpr) {
  const QPoint by = moved(view);
  const QRect window = windowOf(view);
  if (std::abs(by.x()) >= window.width() || std::abs(by.y()) >= window.height() || dpr != std::floor(dpr)) {
    m_stale = window;
    return;
  }
  m_stale.translate(by);
  m_pixmap.scroll(by.x() * static_cast<int>(dpr), by.y() * static_cast<int>(dpr), QRect({0, 0}, m_pixmap.size()));
  m_stale += QRegion(window) - window.translated(by);
}

}  // namespace cleave::views
