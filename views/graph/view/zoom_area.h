#pragma once
/// A widget for a drawing larger than itself: wheel, pinch and keys zoom, dragging pans, and a click without a drag
/// goes to the drawing. Subclasses draw. The picture below the marks is cached; marks are painted anew each time.
///
///     class Map : public ZoomArea { void paintPart(QPainter& painter, const QRect& part) override; ... };
///     map.setContent(QSizeF(2000, 400));
///     map.fit();
#include <QAbstractScrollArea>
#include <functional>
#include <optional>

#include "views/graph/view/cached_picture.h"
#include "views/graph/view/viewport.h"

namespace cleave::views {

class ZoomArea : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit ZoomArea(QWidget* parent = nullptr);

  double zoom() const { return m_view.zoom(); }
  void zoomTo(double zoom);  ///< about the view's middle
  void zoomBy(double factor) { zoomTo(zoom() * factor); }
  void fit();
  QRectF visibleArea() const { return m_view.visibleArea(); }  ///< world pixels
  /// While true, a new size of the view neither moves nor rescales the picture.
  void setStill(bool isStill) { m_view.setStill(isStill); }

 signals:
  void zoomChanged(double zoom);

 protected:
  // What a drawing supplies
  /// Paints a part of the picture. The painter maps window pixels and is clipped to the part.
  virtual void paintPart(QPainter& painter, const QRect& part) = 0;
  virtual void paintMarks(QPainter& painter) = 0;  ///< over the picture; the painter maps world pixels
  virtual void paintEmpty(QPainter& painter) = 0;  ///< without a drawing
  virtual void viewMoved() = 0;
  virtual void hoverAt(const QPointF& world) = 0;
  virtual void clickAt(const QPointF& world, Qt::KeyboardModifiers modifiers) = 0;

  // What a drawing uses
  const Viewport& view() const { return m_view; }
  /// Applies `change` to the view, repaints and reports it.
  void changeView(const std::function<void(Viewport& view)>& change);
  void setContent(std::optional<QSizeF> size) { m_view.setContent(size); }  ///< nullopt: no drawing
  void setMargins(const QMargins& margins);
  void repaintAll();
  void repaintPart(const QRegion& region);  ///< window pixels, also outside the window
  /// See CachedPicture::reach.
  std::optional<QRect> cachedReach() const { return m_picture.reach(m_view); }

  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void scrollContentsBy(int, int) override {}

 private:
  /// A pressed mouse button.
  struct Press {
    QPoint at;
    QPointF offset;  ///< of the view at that moment
    bool isDrag = false;
  };
  void zoomAt(double zoom, const QPointF& at);

  Viewport m_view;
  CachedPicture m_picture;
  std::optional<Press> m_press;
};

}  // namespace cleave::views
