#include "views/panels/pareto_plot.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/panels/figures.h"

namespace cleave::views {

namespace {
constexpr double kPointReach = 14;    ///< pixels around a point within which the pointer selects it
constexpr double kBudgetReach = 0.6;  ///< distance beyond the front, relative to its range, at which the budget still
                                      ///< widens the axis
}  // namespace

ParetoPlot::ParetoPlot(QWidget* parent) : PlotWidget(QStringLiteral("Time against bytes per rank"), parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void ParetoPlot::setData(ParetoData data) {
  std::optional<solve::ParetoPoint> before;
  if (current() >= 0) before = point(current());
  m_data = std::move(data);
  std::sort(m_data.front.points.begin(), m_data.front.points.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes, -a.femtoseconds) < std::pair(b.bytes, -b.femtoseconds);
  });
  const auto indexOf = [&](const std::optional<solve::ParetoPoint>& wanted) {
    for (int i = 0; wanted && i < count(); ++i)
      if (point(i).bytes == wanted->bytes && point(i).femtoseconds == wanted->femtoseconds) return i;
    return -1;
  };
  const int same = indexOf(before);
  dataChanged(same >= 0 ? same : indexOf(m_data.present));
  emit readoutChanged();
}

std::optional<PlotAxes> ParetoPlot::makeAxes(const QRectF& plot) const {
  if (m_data.front.points.empty()) return std::nullopt;
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
  const PlotAxis bytes = PlotAxis::ofBytes(lowBytes, highBytes, PlotAxes::ticksAcross(plot));
  const PlotAxis time = PlotAxis::ofTime(lowFs, highFs, PlotAxes::ticksUp(plot, font()));
  return PlotAxes(plot, bytes.named(QStringLiteral("bytes per rank")), time.named(QStringLiteral("time per step")));
}

QPointF ParetoPlot::positionOf(const solve::ParetoPoint& point) const {
  return axes() ? axes()->frame.at(static_cast<double>(point.bytes), static_cast<double>(point.femtoseconds))
                : QPointF();
}

int ParetoPlot::pointAt(const QPointF& position) const {
  if (!axes()) return -1;
  int nearest = -1;
  double best = kPointReach * kPointReach;
  for (int i = 0; i < count(); ++i) {
    const QPointF away = positionOf(point(i)) - position;
    if (const double distance = QPointF::dotProduct(away, away); distance < best) nearest = i, best = distance;
  }
  return nearest;
}

PlotKeys ParetoPlot::keys(Qt::KeyboardModifiers modifiers) const {
  return {.along = modifiers & Qt::ControlModifier ? std::max(1, count() / 10) : 1};
}

bool ParetoPlot::useMark(int mark) {
  if (mark >= 0) emit pointUsed(point(mark));
  return true;
}

QString ParetoPlot::readout() const {
  const int index = shownMark();
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
  const QRectF plot = axes()->frame.rect;
  QPolygonF line;
  line << QPointF(positionOf(point(0)).x(), plot.top());
  for (int i = 0; i < count(); ++i) {
    const QPointF at = positionOf(point(i));
    if (i > 0) line << QPointF(at.x(), line.last().y());
    line << at;
  }
  return line << QPointF(plot.right(), line.last().y());
}

void ParetoPlot::paintPlot(QPainter& painter) {
  if (!axes()) return;
  painter.setFont(smallFont(font()));
  paintAreas(painter);
  axes()->paint(painter, theme());
  paintFront(painter);
  paintBudget(painter);
  paintPresent(painter);
}

void ParetoPlot::paintAreas(QPainter& painter) const {
  const Theme theme = this->theme();
  const QRectF plot = axes()->frame.rect;
  QPolygonF below = steps();
  below << plot.bottomRight() << plot.bottomLeft() << plot.topLeft();
  painter.save();
  painter.setClipRect(plot);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme.groundSunken);
  painter.drawPolygon(below);
  if (m_data.budgetBytes && static_cast<double>(*m_data.budgetBytes) < axes()->x.high()) {
    QRectF beyond = plot;
    beyond.setLeft(std::max(plot.left(), positionOf({0, *m_data.budgetBytes}).x()));
    QColor ink = theme.conflict;
    ink.setAlpha(110);
    painter.setBrush(QBrush(ink, Qt::BDiagPattern));
    painter.drawRect(beyond);
  }
  painter.restore();

  // The region is named if the corner has room for the text.
  const QString name = m_data.front.isExact ? QStringLiteral("no plan") : QStringLiteral("none found");
  const QRectF words = painter.fontMetrics().boundingRect(name).adjusted(-4, -2, 4, 2);
  const QRectF corner(plot.left() + 6, plot.bottom() - words.height() - 4, words.width(), words.height());
  if (!below.containsPoint(corner.topRight(), Qt::WindingFill)) return;
  painter.setPen(theme.textQuiet);
  painter.drawText(corner, Qt::AlignCenter, name);
}

void ParetoPlot::paintBudget(QPainter& painter) const {
  if (!m_data.budgetBytes) return;
  const Theme theme = this->theme();
  const QRectF plot = axes()->frame.rect;
  const auto budget = static_cast<double>(*m_data.budgetBytes);
  QString text = QStringLiteral("budget %1").arg(bytesText(*m_data.budgetBytes));
  double x = positionOf({0, *m_data.budgetBytes}).x();
  if (budget > axes()->x.high())
    text += QStringLiteral(" →"), x = plot.right();
  else if (budget < axes()->x.low())
    text = QStringLiteral("← ") + text, x = plot.left();
  else {
    painter.setPen(QPen(theme.conflict, 1.6, Qt::DashLine));
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  }
  const double width = painter.fontMetrics().horizontalAdvance(text);
  const double behindTitle = axes()->titleEnd(painter.fontMetrics());
  const double left = std::max(std::min(x - width / 2, plot.right() - width), behindTitle);
  painter.setPen(theme.text);
  painter.drawText(QRectF(left, 4, width + 2, painter.fontMetrics().height()), Qt::AlignLeft | Qt::AlignTop, text);
}

void ParetoPlot::paintFront(QPainter& painter) const {
  const Theme theme = this->theme();
  painter.save();
  painter.setClipRect(axes()->frame.rect.adjusted(-6, -6, 6, 6));
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
  ring(hoveredMark() == current() ? -1 : hoveredMark(), 5.5, theme.textQuiet);
  ring(current(), 6.5, hasFocus() ? theme.accent : theme.textQuiet);
  painter.restore();
}

void ParetoPlot::paintPresent(QPainter& painter) const {
  if (!m_data.present) return;
  const Theme theme = this->theme();
  const QRectF plot = axes()->frame.rect;
  const QPointF at = positionOf(*m_data.present);
  if (!plot.adjusted(-1, -1, 1, 1).contains(at)) return;
  painter.setPen(QPen(theme.ground, 1.5));
  painter.setBrush(theme.text);
  const double r = 6;
  painter.drawPolygon(QPolygonF({at + QPointF(0, -r), at + QPointF(r, 0), at + QPointF(0, r), at + QPointF(-r, 0)}));
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

}  // namespace cleave::views
