#include "views/graph/view/minimap.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

namespace cleave::views {
namespace {
constexpr double kMargin = 6;
constexpr int kRepaintMs = 150;
}  // namespace

Minimap::Minimap(QWidget* parent, PaintScene paint)
    : QWidget(parent), m_paint(std::move(paint)), m_theme(Theme::light()) {
  setAccessibleName(QStringLiteral("Overview of the graph"));
  setAccessibleDescription(QStringLiteral("Arrows, Page Up and Down, Home and End move the view"));
  setCursor(Qt::ArrowCursor);
  setFocusPolicy(Qt::TabFocus);
  m_repaint.setSingleShot(true);
  m_repaint.setInterval(kRepaintMs);
  connect(&m_repaint, &QTimer::timeout, this, [this] {
    m_isStale = true;
    update();
  });
}

void Minimap::setTheme(const Theme& theme) {
  m_theme = theme;
  m_isStale = true;
  update();
}

void Minimap::setScene(const QRectF& bounds) {
  m_bounds = bounds;
  m_isStale = true;
  update();
}

void Minimap::refresh() {
  if (!m_repaint.isActive()) m_repaint.start();
}

void Minimap::setView(const QRectF& world) {
  if (world == m_view) return;
  m_view = world;
  update();
}

double Minimap::scale() const {
  if (m_bounds.isEmpty()) return 1;
  return std::min((width() - 2 * kMargin) / m_bounds.width(), (height() - 2 * kMargin) / m_bounds.height());
}

QPointF Minimap::offset() const {
  const double s = scale();
  return {(width() - m_bounds.width() * s) / 2 - m_bounds.left() * s, kMargin - m_bounds.top() * s};
}

void Minimap::resizeEvent(QResizeEvent*) { m_isStale = true; }

void Minimap::paintPicture() {
  m_picture = QPixmap(size() * devicePixelRatioF());
  m_picture.setDevicePixelRatio(devicePixelRatioF());
  m_picture.fill(m_theme.groundRaised);
  if (m_bounds.isEmpty()) return;
  QPainter painter(&m_picture);
  painter.translate(offset());
  painter.scale(scale(), scale());
  m_paint(painter, scale());
}

void Minimap::paintEvent(QPaintEvent*) {
  if (std::exchange(m_isStale, false)) paintPicture();
  QPainter painter(this);
  painter.drawPixmap(0, 0, m_picture);
  painter.setPen(m_theme.border);
  painter.drawLine(0, 0, 0, height());
  if (m_bounds.isEmpty()) return;
  const double s = scale();
  QRectF view(m_view.topLeft() * s + offset(), m_view.size() * s);
  view = view.intersected(QRectF(rect()).adjusted(2, 2, -2, -2));
  QColor wash = m_theme.accent;
  wash.setAlpha(24);
  painter.setBrush(wash);
  painter.setPen(m_theme.accent);
  painter.drawRect(view.adjusted(0, 0, -1, -1));
  if (!hasFocus()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(m_theme.accent, 2));
  painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
}

void Minimap::focusInEvent(QFocusEvent*) { update(); }

void Minimap::focusOutEvent(QFocusEvent*) { update(); }

void Minimap::keyPressEvent(QKeyEvent* event) {
  if (m_bounds.isEmpty()) return QWidget::keyPressEvent(event);
  constexpr double kStep = 0.25, kPage = 0.9;  // fractions of the view
  QPointF to = m_view.center();
  switch (event->key()) {
    case Qt::Key_Left: to.rx() -= kStep * m_view.width(); break;
    case Qt::Key_Right: to.rx() += kStep * m_view.width(); break;
    case Qt::Key_Up: to.ry() -= kStep * m_view.height(); break;
    case Qt::Key_Down: to.ry() += kStep * m_view.height(); break;
    case Qt::Key_PageUp: to.ry() -= kPage * m_view.height(); break;
    case Qt::Key_PageDown: to.ry() += kPage * m_view.height(); break;
    case Qt::Key_Home: to.setY(m_bounds.top()); break;
    case Qt::Key_End: to.setY(m_bounds.bottom()); break;
    default: return QWidget::keyPressEvent(event);
  }
  // The area outside the picture is empty, so the view stays inside.
  emit moved(QPointF(std::clamp(to.x(), m_bounds.left(), m_bounds.right()),
                     std::clamp(to.y(), m_bounds.top(), m_bounds.bottom())));
}

void Minimap::go(const QPoint& at) {
  if (!m_bounds.isEmpty()) emit moved((QPointF(at) - offset()) / scale());
}

void Minimap::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) go(event->pos());
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() & Qt::LeftButton) go(event->pos());
}

}  // namespace cleave::views
