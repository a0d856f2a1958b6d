#include "views/run/line_chart.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "solve/cost/cost_model.h"
#include "views/base/text.h"
#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr int kPixelsPerXTick = 78;
constexpr int kEdge = 8;
constexpr double kFsPerMs = 1e12;
constexpr std::size_t kMostNamed = 4;  ///< lines named in the head; with more lines, all have shades of one hue

QFont chartFont(const QFont& font) {
  QFont small = font;
  small.setPointSizeF(small.pointSizeF() * 0.88);
  return small;
}

PlotAxis axisOf(ChartUnit unit, double low, double high, int most) {
  switch (unit) {
    case ChartUnit::Bytes:
      return PlotAxis::ofBytes(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), most);
    case ChartUnit::Milliseconds:
      return PlotAxis::ofTime(Femtoseconds::ofSeconds(low / 1000), Femtoseconds::ofSeconds(high / 1000), most);
    case ChartUnit::Whole: return PlotAxis::ofNumbers(low, high, most, true);
    case ChartUnit::Number: break;
  }
  return PlotAxis::ofNumbers(low, high, most);
}

/// The unit of an axis.
double onAxis(ChartUnit unit, double value) { return unit == ChartUnit::Milliseconds ? value * kFsPerMs : value; }
}  // namespace

LineChart::LineChart(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LineChart::setData(ChartData data) {
  m_data = std::move(data);
  setAccessibleName(m_data.title);
  setAccessibleDescription(readout());
  update();
}

QString LineChart::text(ChartUnit unit, double value) const {
  switch (unit) {
    case ChartUnit::Bytes: return bytesText(static_cast<std::int64_t>(value));
    case ChartUnit::Milliseconds: return toQ(solve::timeText(Femtoseconds::ofSeconds(value / 1000)));
    case ChartUnit::Whole: return QString::number(static_cast<qint64>(value));
    case ChartUnit::Number: break;
  }
  return QString::number(value, 'g', 7);
}

QPointF LineChart::Axes::at(const QPointF& point) const {
  return {plot.left() + x.share(point.x()) * plot.width(), plot.bottom() - y.share(point.y()) * plot.height()};
}

std::optional<LineChart::Axes> LineChart::axes() const {
  double left = HUGE_VAL, right = -HUGE_VAL, low = HUGE_VAL, high = -HUGE_VAL;
  for (const ChartLine& line : m_data.lines) {
    for (const QPointF& point : line.points) {
      if (!std::isfinite(point.y())) continue;
      left = std::min(left, point.x()), right = std::max(right, point.x());
      low = std::min(low, point.y()), high = std::max(high, point.y());
    }
  }
  if (left > right) return std::nullopt;
  for (const ChartMark& mark : m_data.marks) low = std::min(low, mark.at), high = std::max(high, mark.at);
  if (m_data.y == ChartUnit::Bytes) low = 0;          // memory starts at zero
  if (m_data.x == ChartUnit::Milliseconds) left = 0;  // time starts at zero
  const QFontMetrics metrics(chartFont(font()));
  const double below = 2.0 * metrics.height() + 6 + (m_data.sections.empty() ? 0 : metrics.height() + 4);
  Axes axes;
  const double leftRoom = metrics.horizontalAdvance(QStringLiteral("000.00")) + 10;
  axes.plot = QRectF(rect()).adjusted(leftRoom, metrics.height() + 10, -kEdge, -below);
  if (axes.plot.width() < 20 || axes.plot.height() < 20) return std::nullopt;
  // Room for the name above the highest mark.
  const double nameHeight = metrics.height() + 2;
  if (!m_data.marks.empty() && axes.plot.height() > 2 * nameHeight)
    high += (high - low) * nameHeight / (axes.plot.height() - nameHeight);
  axes.x = axisOf(m_data.x, left, right, std::max(1, static_cast<int>(axes.plot.width()) / kPixelsPerXTick));
  axes.y = axisOf(m_data.y, low, high, std::max(1, static_cast<int>(axes.plot.height()) / (2 * metrics.height())));
  return axes;
}

QColor LineChart::colorOf(std::size_t line) const {
  const Theme theme = Theme::of(palette());
  static constexpr Tint kTints[kMostNamed] = {Tint::Expert, Tint::Dim0, Tint::Dim2, Tint::Dim3};
  if (m_data.lines.size() > kMostNamed)
    return m_data.lines[line].isChosen ? theme.accent : blend(theme.ground, theme.color(Tint::Dim1), 0.75);
  const QColor color = theme.color(kTints[line]);
  return theme.dark && kTints[line] == Tint::Expert ? color.lighter(150) : color;
}

void LineChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme theme = Theme::of(palette());
  painter.fillRect(rect(), theme.ground);
  painter.setFont(chartFont(font()));
  paintHead(painter, QRectF(kEdge, 4, width() - 2 * kEdge, painter.fontMetrics().height()));
  const auto drawn = axes();
  if (!drawn) {
    painter.setPen(theme.textQuiet);
    painter.drawText(rect().adjusted(20, 20, -20, -10), Qt::AlignCenter | Qt::TextWordWrap, m_data.empty);
    return;
  }
  paintAxes(painter, *drawn);
  paintSections(painter, *drawn);
  for (std::size_t i = 0; i < m_data.lines.size(); ++i)
    if (!m_data.lines[i].isChosen) paintLine(painter, *drawn, i);
  for (std::size_t i = 0; i < m_data.lines.size(); ++i)
    if (m_data.lines[i].isChosen) paintLine(painter, *drawn, i);
  for (const ChartMark& mark : m_data.marks) paintMark(painter, *drawn, mark);
  std::vector<QRectF> taken;
  for (const ChartMark& mark : m_data.marks)
    taken.push_back(paintName(painter, *drawn, mark, taken));  // above all lines
  if (const auto x = nearest(*drawn)) {
    painter.setPen(QPen(theme.borderStrong, 1, Qt::DotLine));
    const double at = drawn->at({onAxis(m_data.x, *x), 0}).x();
    painter.drawLine(QPointF(at, drawn->plot.top()), QPointF(at, drawn->plot.bottom()));
  }
}

/// The title, and at the right the names of the lines, or the readout at the pointer.
void LineChart::paintHead(QPainter& painter, const QRectF& head) const {
  const Theme theme = Theme::of(palette());
  QFont strong = painter.font();
  const QFont plain = strong;
  strong.setWeight(QFont::DemiBold);
  painter.setFont(strong);
  painter.setPen(theme.text);
  painter.drawText(head, Qt::AlignLeft | Qt::AlignVCenter, m_data.title);
  double left = head.left() + painter.fontMetrics().horizontalAdvance(m_data.title) + 16;
  painter.setFont(plain);
  const QFontMetrics metrics = painter.fontMetrics();
  if (m_pointer && !readout().isEmpty()) {
    painter.setPen(theme.text);
    const QRectF room(left, head.top(), std::max(0.0, head.right() - left), head.height());
    painter.drawText(room, Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(readout(), Qt::ElideRight, static_cast<int>(room.width())));
    return;
  }
  if (m_data.lines.size() > kMostNamed) return;
  for (std::size_t i = 0; i < m_data.lines.size(); ++i) {
    const QString& name = m_data.lines[i].name;
    const double width = metrics.horizontalAdvance(name) + 30;
    if (name.isEmpty() || left + width > head.right()) continue;
    painter.setPen(QPen(colorOf(i), 2.5));
    painter.drawLine(QPointF(left, head.center().y()), QPointF(left + 14, head.center().y()));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(left + 19, head.top(), width, head.height()), Qt::AlignLeft | Qt::AlignVCenter, name);
    left += width;
  }
}

void LineChart::paintAxes(QPainter& painter, const Axes& axes) const {
  const Theme theme = Theme::of(palette());
  const QRectF& plot = axes.plot;
  const QFontMetrics metrics = painter.fontMetrics();
  const double line = metrics.height();
  for (const double tick : axes.y.ticks()) {
    const double y = plot.bottom() - axes.y.share(tick) * plot.height();
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(0, y - line / 2, plot.left() - 5, line), Qt::AlignRight | Qt::AlignVCenter,
                     axes.y.label(tick));
  }
  for (const double tick : axes.x.ticks()) {
    const double x = plot.left() + axes.x.share(tick) * plot.width();
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(QPointF(x, plot.bottom()), QPointF(x, plot.bottom() + 3));
    painter.setPen(theme.textQuiet);
    painter.drawText(QRectF(x - 40, plot.bottom() + 3, 80, line), Qt::AlignHCenter | Qt::AlignTop, axes.x.label(tick));
  }
  painter.setPen(theme.textQuiet);
  const auto named = [](const QString& name, const QString& unit) {
    return name.isEmpty() || unit.isEmpty() ? name + unit : QStringLiteral("%1, %2").arg(name, unit);
  };
  painter.drawText(QRectF(plot.left(), height() - line - 2, plot.width(), line), Qt::AlignRight | Qt::AlignBottom,
                   named(m_data.xName, axes.x.unit()));
  if (!axes.y.unit().isEmpty())
    painter.drawText(QRectF(2, height() - line - 2, plot.left() + 40, line), Qt::AlignLeft | Qt::AlignBottom,
                     QStringLiteral("in %1").arg(axes.y.unit()));
}

void LineChart::paintSections(QPainter& painter, const Axes& axes) const {
  const Theme theme = Theme::of(palette());
  const QRectF& plot = axes.plot;
  const QFontMetrics metrics = painter.fontMetrics();
  for (std::size_t i = 0; i < m_data.sections.size(); ++i) {
    const auto x = [&](double value) {
      return plot.left() + std::clamp(axes.x.share(onAxis(m_data.x, value)), 0.0, 1.0) * plot.width();
    };
    const double from = x(m_data.sections[i].from);
    const double to = i + 1 < m_data.sections.size() ? x(m_data.sections[i + 1].from) : plot.right();
    const QRectF strip(from, plot.bottom() + metrics.height() + 4, to - from, metrics.height() + 2);
    painter.fillRect(strip, i % 2 == 0 ? theme.groundSunken : blend(theme.groundSunken, theme.text, 0.12));
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(strip.topLeft(), strip.bottomLeft());
    if (metrics.horizontalAdvance(m_data.sections[i].name) + 6 > strip.width()) continue;
    painter.setPen(theme.text);
    painter.drawText(strip, Qt::AlignCenter, m_data.sections[i].name);
  }
}

void LineChart::paintLine(QPainter& painter, const Axes& axes, std::size_t number) const {
  const ChartLine& line = m_data.lines[number];
  QPainterPath path;
  bool isOpen = false;
  for (const QPointF& point : line.points) {
    if (!std::isfinite(point.y())) {
      isOpen = false;
      continue;
    }
    const QPointF at = axes.at({onAxis(m_data.x, point.x()), point.y()});
    isOpen ? path.lineTo(at) : path.moveTo(at);
    isOpen = true;
  }
  const QColor color = colorOf(number);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(color, line.isChosen ? 2.2 : 1.5));
  painter.drawPath(path);
  if (line.points.size() > 40) return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  for (const QPointF& point : line.points)
    if (std::isfinite(point.y())) painter.drawEllipse(axes.at({onAxis(m_data.x, point.x()), point.y()}), 2.4, 2.4);
}

void LineChart::paintMark(QPainter& painter, const Axes& axes, const ChartMark& mark) const {
  const Theme theme = Theme::of(palette());
  const double y = heightOf(axes, mark);
  painter.setPen(QPen(theme.text, 1.5, Qt::DashLine));
  painter.drawLine(QPointF(axes.plot.left(), y), QPointF(axes.plot.right(), y));
}

double LineChart::heightOf(const Axes& axes, const ChartMark& mark) {
  return axes.plot.bottom() - axes.y.share(mark.at) * axes.plot.height();
}

bool LineChart::coversLine(const Axes& axes, const QRectF& plate) const {
  for (const ChartMark& mark : m_data.marks)
    if (plate.contains({plate.center().x(), heightOf(axes, mark)})) return true;
  for (const ChartLine& line : m_data.lines) {
    for (std::size_t i = 0; i + 1 < line.points.size(); ++i) {
      const QPointF &from = line.points[i], &to = line.points[i + 1];
      if (!std::isfinite(from.y()) || !std::isfinite(to.y())) continue;
      const QLineF drawn(axes.at({onAxis(m_data.x, from.x()), from.y()}), axes.at({onAxis(m_data.x, to.x()), to.y()}));
      constexpr int kSamples = 16;
      for (int k = 0; k <= kSamples; ++k)
        if (plate.contains(drawn.pointAt(static_cast<double>(k) / kSamples))) return true;
    }
  }
  return false;
}

/// Places the name above the mark, or else below it, where it covers no line, mark or name if possible: a name on
/// another mark's line would be read as that mark's name.
QRectF LineChart::placeForName(const Axes& axes, const ChartMark& mark, QRectF plate,
                               std::span<const QRectF> taken) const {
  constexpr int kPlaces = 12;
  const double y = heightOf(axes, mark);
  const auto isFree = [&](const QRectF& place) {
    return place.top() >= axes.plot.top() && place.bottom() <= axes.plot.bottom() && !coversLine(axes, place) &&
           std::ranges::none_of(taken, [&](const QRectF& other) { return other.intersects(place); });
  };
  // Marks close to each other have their names at different places.
  const double first = static_cast<double>(&mark - m_data.marks.data()) / static_cast<double>(m_data.marks.size());
  const double room = axes.plot.width() - plate.width();
  for (int i = 0; i < kPlaces; ++i) {
    plate.moveLeft(axes.plot.left() + (1 - std::fmod(first + static_cast<double>(i) / kPlaces, 1.0)) * room);
    plate.moveBottom(y - 1);
    if (isFree(plate)) return plate;
    plate.moveTop(y + 1);
    if (isFree(plate)) return plate;
  }
  plate.moveLeft(axes.plot.left() + (1 - first) * room);
  plate.moveBottom(y - 1);
  if (plate.top() < axes.plot.top()) plate.moveTop(y + 1);
  return plate;
}

QRectF LineChart::paintName(QPainter& painter, const Axes& axes, const ChartMark& mark,
                            std::span<const QRectF> taken) const {
  const Theme theme = Theme::of(palette());
  const QString text = QStringLiteral("%1 %2").arg(mark.name, this->text(m_data.y, mark.at));
  const QFontMetrics metrics = painter.fontMetrics();
  const QRectF plate =
      placeForName(axes, mark, QRectF(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height()), taken);
  painter.fillRect(plate, theme.ground);
  painter.setPen(theme.text);
  painter.drawText(plate, Qt::AlignCenter, text);
  return plate;
}

std::optional<double> LineChart::nearest(const Axes& axes) const {
  if (!m_pointer) return std::nullopt;
  std::optional<double> best;
  double least = HUGE_VAL;
  for (const ChartLine& line : m_data.lines) {
    for (const QPointF& point : line.points) {
      const double away = std::abs(axes.at({onAxis(m_data.x, point.x()), 0}).x() - m_pointer->x());
      if (away < least) least = away, best = point.x();
    }
  }
  return best;
}

QString LineChart::readout() const {
  const auto drawn = axes();
  double last = -HUGE_VAL;
  for (const ChartLine& line : m_data.lines)
    if (!line.points.empty()) last = std::max(last, line.points.back().x());
  const double x = drawn ? nearest(*drawn).value_or(last) : last;
  if (!std::isfinite(x)) return {};
  QStringList parts{m_data.xName.isEmpty() ? text(m_data.x, x)
                                           : QStringLiteral("%1 %2").arg(m_data.xName, text(m_data.x, x))};
  for (const ChartLine& line : m_data.lines) {
    if (m_data.lines.size() > kMostNamed && !line.isChosen) continue;
    const auto at = std::lower_bound(line.points.begin(), line.points.end(), x,
                                     [](const QPointF& point, double value) { return point.x() < value; });
    if (at == line.points.end()) continue;
    parts << (line.name.isEmpty() ? text(m_data.y, at->y())
                                  : QStringLiteral("%1: %2").arg(line.name, text(m_data.y, at->y())));
  }
  return parts.join(QStringLiteral(" · "));
}

void LineChart::mouseMoveEvent(QMouseEvent* event) {
  m_pointer = event->position();
  update();
}

void LineChart::leaveEvent(QEvent*) {
  m_pointer.reset();
  update();
}

}  // namespace cleave::views
