#include "views/graph/view/viewport.h"

#include <algorithm>
#include <cmath>

namespace cleave::views {
namespace {

constexpr double kMaxZoom = 6, kMaxFit = 1, kLeastFit = 1e-4;
constexpr double kLeastReadable = 0.2;  // a smaller drawing is not readable as a whole
constexpr double kReadableHeight = 10;  // pixels; a lower box is not readable
constexpr double kReadableZoom = 0.8;   // shows a box that was not readable
constexpr double kScrollMargin = 40;    // pixels around a rectangle that is scrolled to
constexpr double kReach = 80;           // pixels of the drawing that always stay in the window

QPointF rounded(const QPointF& p) { return {std::round(p.x()), std::round(p.y())}; }

/// How far to move [from, to] so that it is in [low, high].
double shiftInto(double from, double to, double low, double high) {
  if (to - from > high - low) return from >= low && from < (low + high) / 2 ? 0 : low - from;  // from its header on
  const double by = from < low ? low - from : to > high ? high - to : 0;
  return std::abs(by) < high - low ? by : (low + high - from - to) / 2;
}

/// The nearest start of a drawing of this length with enough pixels in the window.
double startInReach(double at, double length, double window) {
  const double reach = std::min(kReach, length);
  return std::round(std::clamp(at, reach - length, std::max(reach - length, window - reach)));
}

}  // namespace

void Viewport::adapt() {
  if (m_isStill) return;
  if (m_isFitted) fit();
  keepInReach();
}

void Viewport::fit() {
  if (!m_content || m_content->isEmpty() || m_window.isEmpty()) return;
  m_zoom = std::clamp(std::min(m_window.width() / m_content->width(), m_window.height() / m_content->height()),
                      kLeastFit, kMaxFit);
  const QSizeF free = m_window - *m_content * m_zoom;
  m_offset = rounded({free.width() / 2, free.height() / 2});
  m_isFitted = true;
}

void Viewport::fitReadable(const QRectF& focus) {
  fit();
  if (!m_content || m_zoom >= kLeastReadable) return;
  zoomAt(std::clamp(m_window.width() / std::max(1.0, m_content->width()), kLeastReadable, kMaxFit), {});
  m_offset = QPointF(std::round((m_window.width() - m_content->width() * m_zoom) / 2), 0);
  keepInReach();
  if (!focus.isNull()) scrollIntoView(focus);
}

void Viewport::zoomAt(double zoom, const QPointF& at) {
  if (!m_content) return;
  const double fitting = std::min(m_window.width() / std::max(1.0, m_content->width()),
                                  m_window.height() / std::max(1.0, m_content->height()));
  const QPointF world = toWorld(at);
  m_zoom = std::clamp(zoom, std::min(0.5 * fitting, 0.25), kMaxZoom);
  m_offset = rounded(at - world * m_zoom);
  m_isFitted = false;
  keepInReach();
}

void Viewport::panBy(const QPointF& by) {
  shift(by);
  m_isFitted = false;
  keepInReach();
}

void Viewport::shift(const QPointF& by) { m_offset += rounded(by); }

void Viewport::keepInReach() {
  if (!m_content) return;
  const QSizeF size = *m_content * m_zoom;
  m_offset = QPointF(startInReach(m_offset.x(), size.width(), m_window.width()),
                     startInReach(m_offset.y(), size.height(), m_window.height()));
}

void Viewport::scrollIntoView(const QRectF& world) {
  const QRectF at = toView(world);
  const QRectF room = QRectF({0, 0}, m_window).adjusted(kScrollMargin, kScrollMargin, -kScrollMargin, -kScrollMargin);
  const QPointF by(shiftInto(at.left(), at.right(), room.left(), room.right()),
                   shiftInto(at.top(), at.bottom(), room.top(), room.bottom()));
  if (!by.isNull()) panBy(by);
}

void Viewport::show(const QRectF& world) {
  if (m_isFitted && world.height() * m_zoom < kReadableHeight) zoomAtMiddle(kReadableZoom);
  scrollIntoView(world);
}

}  // namespace cleave::views
