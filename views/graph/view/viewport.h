#pragma once
/// The position of a drawing in a window: how world pixels of the drawing map to pixels of the window.
///
/// The zoom is window pixels per world pixel. The offset is the window position of the world's origin. It has whole
/// pixels, so that panning can copy pixels. A fitted view shows the whole drawing and follows the window's size until
/// the user moves it. A still view ignores new sizes. Only numbers: no widgets and no events.
///
///     Viewport view;
///     view.setWindow({800, 600});
///     view.setContent(QSizeF(2000, 400));
///     view.fit();                  // zoom 0.4
///     view.zoomAt(1, {400, 300});  // the world point at (400, 300) stays there
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <optional>

namespace cleave::views {

class Viewport {
 public:
  double zoom() const { return m_zoom; }
  QPointF offset() const { return m_offset; }
  bool isFitted() const { return m_isFitted; }  ///< for tests
  bool isStill() const { return m_isStill; }
  bool hasContent() const { return m_content.has_value(); }
  const QSizeF& window() const { return m_window; }

  // Neither moves the view: call `adapt` or one of the moves below.
  void setWindow(const QSizeF& size) { m_window = size; }
  void setContent(std::optional<QSizeF> size) { m_content = size; }  ///< of the drawing at 100 %; nullopt: no drawing
  void setStill(bool isStill) { m_isStill = isStill; }

  QPointF toWorld(const QPointF& at) const { return (at - m_offset) / m_zoom; }
  QPointF toView(const QPointF& world) const { return world * m_zoom + m_offset; }
  QRectF toView(const QRectF& world) const { return {toView(world.topLeft()), world.size() * m_zoom}; }
  QRectF visibleArea() const { return {toWorld({0, 0}), m_window / m_zoom}; }  ///< world pixels
  bool shows(const QRectF& world) const { return toView(world).intersects({{0, 0}, m_window}); }

  /// After a new size of the window: fits a fitted view again and keeps others in reach. A still view stays.
  void adapt();
  /// Shows the whole drawing in the middle, at 100 % at most.
  void fit();
  /// Fits the whole drawing. If that would be too small to read: its top, or `focus` (world) if that is not null.
  void fitReadable(const QRectF& focus = {});
  void stopFitting() { m_isFitted = false; }
  /// The world point at `at` (window pixels) stays there. The zoom is limited.
  void zoomAt(double zoom, const QPointF& at);
  void zoomAtMiddle(double zoom) { zoomAt(zoom, QRectF({0, 0}, m_window).center()); }
  void panBy(const QPointF& by);
  /// As `panBy`, without limits; a fitted view stays fitted. Follow with `keepInReach`.
  void shift(const QPointF& by);
  /// Part of the drawing always stays in the window.
  void keepInReach();
  /// Moves the drawing by the smallest amount. A distant rectangle moves to the middle.
  void scrollIntoView(const QRectF& world);
  /// As `scrollIntoView`. Keeps a zoom that the user chose; a fit changes if the rectangle would not be readable.
  void show(const QRectF& world);

 private:
  QSizeF m_window;
  std::optional<QSizeF> m_content;
  double m_zoom = 1;
  QPointF m_offset;
  bool m_isFitted = true;
  bool m_isStill = false;
};

}  // namespace cleave::views
