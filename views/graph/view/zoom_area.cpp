#include "views/graph/view/zoom_area.h"

#include <QGestureEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QNativeGestureEvent>
#include <QPaintEvent>
#include <QPainter>
#include <QPinchGesture>
#include <QWheelEvent>
#include <cmath>

namespace cleave::views {
namespace {

constexpr double kKeyZoom = 1.25, kWheelZoom = 1.0016;
constexpr int kDragDistance = 5;  // pixels; a shorter movement is a click

}  // namespace

ZoomArea::ZoomArea(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
  viewport()->grabGesture(Qt::PinchGesture);
}

// ---- view

void ZoomArea::changeView(const std::function<void(Viewport& view)>& change) {
  const double before = m_view.zoom();
  change(m_view);
  viewMoved();
  viewport()->update();
  if (m_view.zoom() != before) emit zoomChanged(m_view.zoom());
}

void ZoomArea::zoomTo(double zoom) {
  changeView([zoom](Viewport& view) { view.zoomAtMiddle(zoom); });
}

void ZoomArea::zoomAt(double zoom, const QPointF& at) {
  changeView([&](Viewport& view) { view.zoomAt(zoom, at); });
}

void ZoomArea::fit() {
  changeView([](Viewport& view) { view.fit(); });
}

void ZoomArea::setMargins(const QMargins& margins) {
  setViewportMargins(margins);
  m_view.setWindow(viewport()->size());  // a hidden widget gets its resize event later
}

void ZoomArea::resizeEvent(QResizeEvent*) {
  m_picture.invalidate();
  changeView([this](Viewport& view) {
    view.setWindow(viewport()->size());
    view.adapt();
  });
}

// ---- paint

void ZoomArea::repaintAll() {
  m_picture.invalidate();
  viewport()->update();
}

void ZoomArea::repaintPart(const QRegion& region) {
  m_picture.invalidate(region, m_view);
  viewport()->update(region);
}

void ZoomArea::paintEvent(QPaintEvent*) {
  QPainter screen(viewport());
  if (!m_view.hasContent()) return paintEmpty(screen);
  const auto paint = [this](QPainter& painter, const QRect& part) { paintPart(painter, part); };
  screen.drawPixmap(0, 0, m_picture.updated(m_view, devicePixelRatioF(), paint));
  screen.translate(m_view.offset());
  screen.scale(m_view.zoom(), m_view.zoom());
  screen.setRenderHint(QPainter::Antialiasing);
  paintMarks(screen);
}

// ---- input

bool ZoomArea::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Gesture) {
    auto* gesture = static_cast<QGestureEvent*>(event);
    if (auto* pinch = static_cast<QPinchGesture*>(gesture->gesture(Qt::PinchGesture))) {
      zoomAt(zoom() * pinch->scaleFactor(), viewport()->mapFromGlobal(pinch->centerPoint().toPoint()));
      gesture->accept(pinch);
      return true;
    }
  } else if (event->type() == QEvent::NativeGesture) {
    auto* gesture = static_cast<QNativeGestureEvent*>(event);
    if (gesture->gestureType() == Qt::ZoomNativeGesture) {
      zoomAt(zoom() * (1 + gesture->value()), gesture->position());
      return true;
    }
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void ZoomArea::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return;
  m_press = Press{event->pos(), m_view.offset(), event->button() == Qt::MiddleButton};
}

void ZoomArea::mouseMoveEvent(QMouseEvent* event) {
  if (!m_press) {
    if (m_view.hasContent()) hoverAt(m_view.toWorld(event->pos()));
    return;
  }
  const QPoint moved = event->pos() - m_press->at;
  if (!m_press->isDrag && moved.manhattanLength() > kDragDistance) {
    m_press->isDrag = true;
    viewport()->setCursor(Qt::ClosedHandCursor);
  }
  if (!m_press->isDrag) return;
  changeView([&](Viewport& view) { view.panBy(m_press->offset + QPointF(moved) - view.offset()); });
}

void ZoomArea::mouseReleaseEvent(QMouseEvent* event) {
  const bool wasClick = m_press && !m_press->isDrag && event->button() == Qt::LeftButton;
  m_press.reset();
  viewport()->setCursor(Qt::ArrowCursor);
  if (wasClick && m_view.hasContent()) clickAt(m_view.toWorld(event->pos()), event->modifiers());
}

void ZoomArea::wheelEvent(QWheelEvent* event) {
  const QPoint pixels = event->pixelDelta(), angle = event->angleDelta();
  if (event->modifiers() & (Qt::ShiftModifier | Qt::AltModifier)) {
    const int along = angle.y() != 0 ? angle.y() : angle.x();
    const QPointF by = !pixels.isNull()                         ? QPointF(pixels)
                       : (event->modifiers() & Qt::AltModifier) ? QPointF(0, along)
                                                                : QPointF(along, 0);
    changeView([&](Viewport& view) { view.panBy(by); });
  } else {
    zoomAt(zoom() * std::pow(kWheelZoom, angle.y()), event->position());
  }
  event->accept();
}

void ZoomArea::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomBy(kKeyZoom);
    case Qt::Key_Minus: return zoomBy(1 / kKeyZoom);
    case Qt::Key_0: return fit();
    case Qt::Key_1: return zoomTo(1);
    default: return QAbstractScrollArea::keyPressEvent(event);
  }
}

}  // namespace cleave::views
