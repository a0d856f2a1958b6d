#include "canvas/minimap.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

namespace cleave::views {
namespace {
constexpr double kMargin = 6;
}

Minimap::Minimap(QWidget* parent, PaintScene paint)
    : QWidget(parent), m_paint(std::move(paint)), m_theme(Theme::light()) {
  setAccessibleName(tr("Overview of the graph"));
  setCursor(Qt::ArrowCursor);
}

void Minimap::setTheme(const Theme& theme) {
  m_theme = theme;
  refresh();
}

void Minimap::setScene(const QRectF& bounds) {
  m_bounds = bounds;
  refresh();
}

void Minimap::refresh() {
  m_isStale = true;
  update();
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

void Minimap::resizeEvent(QResizeEvent*) {
  m_isStale = true;
}

void Minimap::paintEvent(QPaintEvent*) {
  if (m_isStale) {
    m_isStale = false;
    m_picture = QPixmap(size() * devicePixelRatioF());
    m_picture.setDevicePixelRatio(devicePixelRatioF());
    m_picture.fill(m_theme.groundRaised);
    if (!m_bounds.isEmpty()) {
      QPainter painter(&m_picture);
      painter.translate(offset());
      painter.scale(scale(), scale());
      m_paint(painter, scale());
    }
  }
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
