#include "views/panels/pareto_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/panels/figures.h"

namespace cleave::views {

namespace {
constexpr double kReach = 14;         ///< pixels around a point within which the pointer selects it
constexpr int kPixelsPerTick = 74;    ///< at least, so that labels do not touch
constexpr double kBudgetReach = 0.6;  ///< distance beyond the front, relative to its range, at which the budget still
                                      ///< widens the axis
constexpr double kTitleLeft = 4;

QFont smallFont(const QFont& font) {
  QFont small = font;
  small.setPointSizeF(small.pointSizeF() * 0.88);
  return small;
}
}  // namespace

ParetoPlot::ParetoPlot(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setAccessibleName(QStringLiteral("Time against bytes per rank"));
}

void ParetoPlot::setData(ParetoData data) {
  std::optional<solve::ParetoPoint> before;
  if (m_current >= 0) before = point(m_current);
  m_data = std::move(data);
  std::sort(m_data.front.points.begin(), m_data.front.points.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes, -a.femtoseconds) < std::pair(b.bytes, -b.femtoseconds);
  });
  const auto indexOf = [&](const std::optional<solve::ParetoPoint>& wanted) {
    for (int i = 0; wanted && i < count(); ++i)
      if (point(i).bytes == wanted->bytes && point(i).femtoseconds == wanted->femtoseconds) return i;
    return -1;
  };
  m_hovered = -1;
  m_current = indexOf(before);
  if (m_current < 0) m_current = indexOf(m_data.present);
  makeAxes();
  setAccessibleDescription(readout());
  emit readoutChanged();
  update();
}

void ParetoPlot::makeAxes() {
  if (m_data.front.points.empty()) return;
  Femtoseconds lowFs = m_data.front.points.front().femtoseconds, highFs = lowFs;
  std::int64_t lowBytes = INT64_MAX, highBytes = 0;
  const auto take = [&](const solve::ParetoPoint& p) {
    lowFs = std::min(lowFs, p.femtoseconds), highFs = std::max(highFs, p.femtoseconds);
    lowBytes = std::min(lowBytes, p.bytes), highBytes = std::max(highBytes, p.bytes);
  };
  for (const solve::ParetoPoint& p : m_data.front.points) take(p);
  if (m_data.present) take(*m_data.present);
  if (m_data.budgetBytes) {
    // A distant budget would squeeze the front into a corner. An arrow at the edge marks it instead.
    const double range = static_cast<double>(std::max(highBytes - lowBytes, highBytes / 8));
    const auto budget = static_cast<double>(*m_data.budgetBytes);
    if (budget <= static_cast<double>(highBytes) + kBudgetReach * range &&
        budget >= static_cast<double>(lowBytes) - kBudgetReach * range) {
      lowBytes = std::min(lowBytes, *m_data.budgetBytes), highBytes = std::max(highBytes, *m_data.budgetBytes);
    }
  }
  const QRectF plot = plotRect();
  const int line = fontMetrics().height();
  m_bytes = PlotAxis::ofBytes(lowBytes, highBytes, std::max(1, static_cast<int>(plot.width()) / kPixelsPerTick));
  m_time = PlotAxis::ofTime(lowFs, highFs, std::max(1, static_cast<int>(plot.height()) / (2 * line)));
}

QString ParetoPlot::timeTitle() const { return QStringLiteral("time per step, %1").arg(m_time.unit()); }

QRectF ParetoPlot::plotRect() const {
  const QFontMetrics metrics(smallFont(font()));
  const int left = metrics.horizontalAdvance(QStringLiteral("000.00")) + 12;
  return QRectF(rect()).adjusted(left, metrics.height() + 10, -12, -(2 * metrics.height() + 10));
}

QPointF ParetoPlot::positionOf(const solve::ParetoPoint& point) const {
  const QRectF plot = plotRect();
  return {plot.left() + m_bytes.share(static_cast<double>(point.bytes)) * plot.width(),
          plot.bottom() - m_time.share(static_cast<double>(point.femtoseconds)) * plot.height()};
}

int ParetoPlot::pointAt(const QPointF& position) const {
  int nearest = -1;
  double best = kReach * kReach;
  for (int i = 0; i < count(); ++i) {
    const QPointF away = positionOf(point(i)) - position;
    if (const double distance = QPointF::dotProduct(away, away); distance < best) nearest = i, best = distance;
  }
  return nearest;
}

void ParetoPlot::setCurrent(int index) {
  index = count() == 0 ? -1 : std::clamp(index, -1, count() - 1);
  if (index == m_current) return;
  m_current = index;
  setAccessibleDescription(readout());
  emit currentChanged(index);
  emit readoutChanged();
  update();
}

void ParetoPlot::hover(int index) {
  if (index == m_hovered) return;
  m_hovered = index;
  setCursor(index >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  emit readoutChanged();
  update();
}

QString ParetoPlot::readout() const {
  const int index = shownPoint();
  if (index < 0) return QStringLiteral("Point at a plan, or move with the arrow keys.");
  const solve::ParetoPoint& p = point(index);
  QString text = QStringLiteral("%1 per step · %2 per rank").arg(timeText(p.femtoseconds), bytesText(p.bytes));
  if (m_data.present) {
    const Femtoseconds fs = p.femtoseconds - m_data.present->femtoseconds;
    const std::int64_t bytes = p.bytes - m_data.present->bytes;
    text += fs == 0 && bytes == 0 ? QStringLiteral(" · the plan shown now")
                                  : QStringLiteral(" · %1 compared with the plan shown now").arg(costChange(fs, bytes));
  }
  if (m_data.budgetBytes && p.bytes > *m_data.budgetBytes)
    text += QStringLiteral(" · over the budget by %1").arg(bytesText(p.bytes - *m_data.budgetBytes));
  return text;
}

QString ParetoPlot::summary() const { return m_data.front.points.empty() ? QString() : toQ(toText(m_data.front)); }

QPolygonF ParetoPlot::steps() const {
  const QRectF plot = plotRect();
  QPolygonF line;
  line << QPointF(positionOf(point(0)).x(), plot.top());
  for (int i = 0; i < count(); ++i) {
    const QPointF at = positionOf(point(i));
    if (i > 0) line << QPointF(at.x(), line.last().y());
    line << at;
  }
  return line << QPointF(plot.right(), line.last().y());
}

void ParetoPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), Theme::of(palette()).ground);
  if (m_data.front.points.empty()) return;
  paintAreas(painter);
  paintAxes(painter);
  paintFront(painter);
  paintBudget(painter);
  paintPresent(painter);
}

void ParetoPlot::paintAreas(QPainter& painter) const {
  const Theme theme = Theme::of(palette());
  const QRectF plot = plotRect();
  QPolygonF below = steps();
  below << plot.bottomRight() << plot.bottomLeft() << plot.topLeft();
  painter.save();
  painter.setClipRect(plot);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.groundSunken);
  painter.drawPolygon(below);
  if (m_data.budgetBytes && static_cast<double>(*m_data.budgetBytes) < m_bytes.high()) {
    QRectF beyond = plot;
    beyond.setLeft(std::max(plot.left(), positionOf({0, *m_data.budgetBytes}).x()));
    QColor ink = theme.conflict;
    ink.setAlpha(110);
    painter.setBrush(QBrush(ink, Qt::BDiagPattern));
    painter.drawRect(beyond);
  }
  painter.restore();

  // The region is named if the corner has room for the text.
  painter.setFont(smallFont(font()));
  const QString name = m_data.front.isExact ? QStringLiteral("no plan") : QStringLiteral("none found");
  const QRectF words = painter.fontMetrics().boundingRect(name).adjusted(-4, -2, 4, 2);
  const QRectF corner(plot.left() + 6, plot.bottom() - words.height() - 4, words.width(), words.height());
  if (!below.containsPoint(corner.topRight(), Qt::WindingFill)) return;
  painter.setPen(theme.textQuiet);
  painter.drawText(corner, Qt::AlignCenter, name);
}

void ParetoPlot::paintAxes(QPainter& painter) const {
  const Theme theme = Theme::of(palette());
  const QRectF plot = plotRect();
  const QFont small = smallFont(font());
  painter.setFont(small);
  const int line = painter.fontMetrics().height();
  QColor grid = theme.border;
  grid.setAlpha(120);
  for (const double tick : m_time.ticks()) {
    const double y = plot.bottom() - m_time.share(tick) * plot.height();
    painter.setPen(QPen(grid, 1, Qt::DotLine));
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(0, y - line / 2.0, plot.left() - 6, line), Qt::AlignRight | Qt::AlignVCenter,
                     m_time.label(tick));
  }
  for (const double tick : m_bytes.ticks()) {
    const double x = plot.left() + m_bytes.share(tick) * plot.width();
    painter.setPen(theme.borderStrong);
    painter.drawLine(QPointF(x, plot.bottom()), QPointF(x, plot.bottom() + 4));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(x - 50, plot.bottom() + 5, 100, line), Qt::AlignHCenter | Qt::AlignTop,
                     m_bytes.label(tick));
  }
  painter.setPen(theme.borderStrong);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  painter.drawLine(plot.topLeft(), plot.bottomLeft());
  painter.setPen(theme.text);
  painter.drawText(QRectF(kTitleLeft, 4, plot.right(), line), Qt::AlignLeft | Qt::AlignTop, timeTitle());
  painter.drawText(QRectF(0, plot.bottom() + 5 + line, plot.right(), line), Qt::AlignRight | Qt::AlignTop,
                   QStringLiteral("bytes per rank, %1").arg(m_bytes.unit()));
}

void ParetoPlot::paintBudget(QPainter& painter) const {
  if (!m_data.budgetBytes) return;
  const Theme theme = Theme::of(palette());
  const QRectF plot = plotRect();
  painter.setFont(smallFont(font()));
  const auto budget = static_cast<double>(*m_data.budgetBytes);
  QString text = QStringLiteral("budget %1").arg(bytesText(*m_data.budgetBytes));
  double x = positionOf({0, *m_data.budgetBytes}).x();
  if (budget > m_bytes.high())
    text += QStringLiteral(" →"), x = plot.right();
  else if (budget < m_bytes.low())
    text = QStringLiteral("← ") + text, x = plot.left();
  else {
    painter.setPen(QPen(theme.conflict, 1.6, Qt::DashLine));
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  }
  const double width = painter.fontMetrics().horizontalAdvance(text);
  const double behindTitle = kTitleLeft + painter.fontMetrics().horizontalAdvance(timeTitle() + QStringLiteral("  "));
  const double left = std::max(std::min(x - width / 2, plot.right() - width), behindTitle);
  painter.setPen(theme.text);
  painter.drawText(QRectF(left, 4, width + 2, painter.fontMetrics().height()), Qt::AlignLeft | Qt::AlignTop, text);
}

void ParetoPlot::paintFront(QPainter& painter) const {
  const Theme theme = Theme::of(palette());
  painter.save();
  painter.setClipRect(plotRect().adjusted(-6, -6, 6, 6));
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(theme.accent, 1.6));
  painter.drawPolyline(steps());
  const double radius = count() > 200 ? 1.6 : count() > 60 ? 2.4 : 3.4;
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.accent);
  QPointF last(-10, -10);
  for (int i = 0; i < count(); ++i) {
    const QPointF at = positionOf(point(i));
    if ((at - last).manhattanLength() < 1) continue;  // thousands of points may share a pixel
    painter.drawEllipse(at, radius, radius);
    last = at;
  }
  const auto ring = [&](int index, double size, const QColor& color) {
    if (index < 0) return;
    painter.setBrush(theme.ground);
    painter.setPen(QPen(color, 2.2));
    painter.drawEllipse(positionOf(point(index)), size, size);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    painter.drawEllipse(positionOf(point(index)), 2, 2);
  };
  ring(m_hovered == m_current ? -1 : m_hovered, 5.5, theme.textQuiet);
  ring(m_current, 6.5, hasFocus() ? theme.accent : theme.textQuiet);
  painter.restore();
}

void ParetoPlot::paintPresent(QPainter& painter) const {
  if (!m_data.present) return;
  const Theme theme = Theme::of(palette());
  const QRectF plot = plotRect();
  const QPointF at = positionOf(*m_data.present);
  if (!plot.adjusted(-1, -1, 1, 1).contains(at)) return;
  painter.setPen(QPen(theme.ground, 1.5));
  painter.setBrush(theme.text);
  const double r = 6;
  painter.drawPolygon(QPolygonF({at + QPointF(0, -r), at + QPointF(r, 0), at + QPointF(0, r), at + QPointF(-r, 0)}));
  painter.setFont(smallFont(font()));
  const QString name = QStringLiteral("shown now");
  const double width = painter.fontMetrics().horizontalAdvance(name);
  const double height = painter.fontMetrics().height();
  // The front has no line above and to the right of this point.
  const double x = std::min(at.x() + 9, plot.right() - width);
  QPainterPath halo;
  halo.addText(QPointF(x, at.y() - 7), painter.font(), name);
  painter.strokePath(halo, QPen(theme.ground, 3));
  painter.setPen(theme.text);
  painter.drawText(QRectF(x, at.y() - 7 - height + painter.fontMetrics().descent(), width + 2, height),
                   Qt::AlignLeft | Qt::AlignBottom, name);
}

void ParetoPlot::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  makeAxes();
}

void ParetoPlot::mousePressEvent(QMouseEvent* event) {
  if (const int index = pointAt(event->position()); index >= 0 && event->button() == Qt::LeftButton) setCurrent(index);
}

void ParetoPlot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int index = pointAt(event->position()); index >= 0 && event->button() == Qt::LeftButton)
    emit pointUsed(point(index));
}

void ParetoPlot::mouseMoveEvent(QMouseEvent* event) { hover(pointAt(event->position())); }

void ParetoPlot::leaveEvent(QEvent*) { hover(-1); }

void ParetoPlot::keyPressEvent(QKeyEvent* event) {
  if (count() == 0) return QWidget::keyPressEvent(event);
  const int step = event->modifiers() & Qt::ControlModifier ? std::max(1, count() / 10) : 1;
  m_hovered = -1;
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down: setCurrent(std::min(count() - 1, m_current + step)); break;
    case Qt::Key_Left:
    case Qt::Key_Up: setCurrent(m_current < 0 ? 0 : std::max(0, m_current - step)); break;
    case Qt::Key_Home: setCurrent(0); break;
    case Qt::Key_End: setCurrent(count() - 1); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      if (m_current >= 0) emit pointUsed(point(m_current));
      break;
    default: QWidget::keyPressEvent(event);
  }
}

void ParetoPlot::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

void ParetoPlot::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace cleave::views
