#include "views/widgets/plot_widget.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

namespace cleave::views {

namespace {
constexpr double kLeastPlot = 20;  ///< width and height below which there is no room for axes
}  // namespace

PlotWidget::PlotWidget(const QString& accessibleName, QWidget* parent, int current)
    : QWidget(parent), m_current(current) {
  setAccessibleName(accessibleName);
}

std::optional<PlotAxes> PlotWidget::makeAxes(const QRectF&) const { return std::nullopt; }
int PlotWidget::markAt(const QPointF&) const { return -1; }
PlotTip PlotWidget::tipOf(int) const { return {}; }
PlotKeys PlotWidget::keys(Qt::KeyboardModifiers) const { return {}; }

PlotTip PlotWidget::tipAt(const QPointF& position) const {
  const int mark = markAt(position);
  return mark < 0 ? PlotTip() : tipOf(mark);
}

QString PlotWidget::description() const {
  return 0 <= m_current && m_current < markCount() ? tipOf(m_current).text : QString();
}

void PlotWidget::describe() { setAccessibleDescription(description()); }

const PlotAxes* PlotWidget::axes() const {
  if (m_axesSize != size()) {
    m_axesSize = size();
    const QRectF plot = PlotAxes::room(rect(), font(), stripHeight());
    const bool hasRoom = plot.width() >= kLeastPlot && plot.height() >= kLeastPlot;
    m_axes = hasRoom ? makeAxes(plot) : std::nullopt;
  }
  return m_axes ? &*m_axes : nullptr;
}

void PlotWidget::dataChanged(int current) {
  m_axesSize = {};
  m_current = current;
  setHoveredMark(m_pointer ? markAt(*m_pointer) : -1);
  describe();
  update();
}

void PlotWidget::setCurrentMark(int mark) {
  mark = std::clamp(mark, -1, markCount() - 1);
  if (mark == m_current) return;
  m_current = mark;
  describe();
  update();
  currentMarkChanged();
}

void PlotWidget::setHoveredMark(int mark) {
  if (mark == m_hovered) return;
  m_hovered = mark;
  if (isSelectable()) setCursor(mark >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
  hoveredMarkChanged();
}

// ---- painting

void PlotWidget::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  if (hasGround()) painter.fillRect(rect(), theme().ground);
  const QString text = emptyText();
  if (text.isEmpty()) return paintPlot(painter);
  painter.setPen(theme().textQuiet);
  painter.drawText(rect().adjusted(8, 4, -8, -4), Qt::AlignCenter | Qt::TextWordWrap, text);
}

void PlotWidget::paintFocus(QPainter& painter, const QRect& rect) const {
  painter.setPen(QPen(palette().highlight(), 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect.adjusted(0, 0, -1, -1));
}

void PlotWidget::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::FontChange && event->type() != QEvent::StyleChange) return;
  m_axesSize = {};
  updateGeometry();
}

// ---- pointer and keys

void PlotWidget::mousePressEvent(QMouseEvent* event) {
  if (!isSelectable()) return QWidget::mousePressEvent(event);
  const int mark = markAt(event->position());
  if (mark < 0 || event->button() != Qt::LeftButton) return;
  const bool wasCurrent = mark == m_current;
  setCurrentMark(mark);
  markClicked(mark, wasCurrent);
}

void PlotWidget::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!isSelectable()) return QWidget::mouseDoubleClickEvent(event);
  const int mark = markAt(event->position());
  if (mark >= 0 && event->button() == Qt::LeftButton) useMark(mark);
}

void PlotWidget::mouseMoveEvent(QMouseEvent* event) {
  if (!hasMouseTracking()) return;
  m_pointer = event->position();
  setHoveredMark(markAt(*m_pointer));
}

void PlotWidget::leaveEvent(QEvent*) { leavePointer(); }

void PlotWidget::leavePointer() {
  m_pointer.reset();
  if (m_hovered >= 0) setHoveredMark(-1);
}

std::optional<int> PlotWidget::markByKey(const QKeyEvent& event) const {
  const PlotKeys by = keys(event.modifiers());
  const int last = markCount() - 1;
  const auto along = [&](int marks) -> std::optional<int> {
    if (marks == 0) return std::nullopt;
    return std::clamp(m_current + marks, 0, last);
  };
  const auto across = [&](int marks) {
    const int mark = m_current + marks;
    return mark < 0 || mark > last ? m_current : mark;
  };
  if (event.key() == by.first) return 0;
  if (event.key() == by.last) return last;
  switch (event.key()) {
    case Qt::Key_Left: return along(-by.along);
    case Qt::Key_Right: return along(by.along);
    case Qt::Key_Up: return by.across > 0 ? across(-by.across) : along(-by.along);
    case Qt::Key_Down: return by.across > 0 ? across(by.across) : along(by.along);
    default: return std::nullopt;
  }
}

void PlotWidget::keyPressEvent(QKeyEvent* event) {
  if (markCount() == 0) return QWidget::keyPressEvent(event);
  const int key = event->key();
  if (key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Space) {
    leavePointer();
    if (useMark(m_current)) return;
  } else if (const auto mark = markByKey(*event)) {
    leavePointer();  // the keyboard's mark is shown until the pointer moves again
    return setCurrentMark(*mark);
  }
  QWidget::keyPressEvent(event);
}

bool PlotWidget::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const PlotTip tip = tipAt(help->pos());
  if (tip.text.isEmpty()) {
    QToolTip::hideText();
    return QWidget::event(event);
  }
  QToolTip::showText(help->globalPos(), tip.text, this, tip.area);
  return true;
}

}  // namespace cleave::views
