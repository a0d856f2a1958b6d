#include "views/run/line_chart.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "solve/cost/cost_model.h"
#include "views/base/text.h"
#include "views/base/theme.h"

namespace cleave::views {

namespace {
constexpr int kEdge = 8;
constexpr double kFsPerMs = 1e12;
constexpr std::size_t kMostNamed = 4;  ///< lines named in the head; with more lines, all have shades of one hue

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

LineChart::LineChart(QWidget* parent) : PlotWidget({}, parent) {
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LineChart::setData(ChartData data) {
  m_data = std::move(data);
  m_xs.clear();
  for (const ChartLine& line : m_data.lines)
    for (const QPointF& point : line.points) m_xs.push_back(point.x());
  std::sort(m_xs.begin(), m_xs.end());
  m_xs.erase(std::unique(m_xs.begin(), m_xs.end()), m_xs.end());
  setAccessibleName(m_data.title);
  dataChanged(-1);
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

QPointF LineChart::positionOf(const QPointF& point) const {
  return axes()->frame.at(onAxis(m_data.x, point.x()), point.y());
}

double LineChart::stripHeight() const {
  return m_data.sections.empty() ? 0 : QFontMetrics(smallFont(font())).height() + 4;
}

std::optional<PlotAxes> LineChart::makeAxes(const QRectF& plot) const {
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
  // Room for the name above the highest mark.
  const double nameHeight = QFontMetrics(smallFont(font())).height() + 2;
  if (!m_data.marks.empty() && plot.height() > 2 * nameHeight)
    high += (high - low) * nameHeight / (plot.height() - nameHeight);
  return PlotAxes(plot, axisOf(m_data.x, left, right, PlotAxes::ticksAcross(plot)).named(m_data.xName),
                  axisOf(m_data.y, low, high, PlotAxes::ticksUp(plot, smallFont(font()))), stripHeight());
}

QColor LineChart::colorOf(std::size_t line) const {
  const Theme theme = Theme::of(palette());
  static constexpr Tint kTints[kMostNamed] = {Tint::Expert, Tint::Dim0, Tint::Dim2, Tint::Dim3};
  if (m_data.lines.size() > kMostNamed)
    return m_data.lines[line].isChosen ? theme.accent : blend(theme.ground, theme.color(Tint::Dim1), 0.75);
  const QColor color = theme.color(kTints[line]);
  return theme.dark && kTints[line] == Tint::Expert ? color.lighter(150) : color;
}

void LineChart::paintPlot(QPainter& painter) {
  painter.setFont(smallFont(font()));
  paintHead(painter, QRectF(kEdge, 4, width() - 2 * kEdge, painter.fontMetrics().height()));
  if (!axes()) {
    painter.setPen(theme().textQuiet);
    painter.drawText(rect().adjusted(20, 20, -20, -10), Qt::AlignCenter | Qt::TextWordWrap, m_data.empty);
    return;
  }
  const PlotFrame& frame = axes()->frame;
  axes()->paint(painter, theme());
  paintSections(painter);
  for (const bool isChosen : {false, true})
    for (std::size_t i = 0; i < m_data.lines.size(); ++i)
      if (m_data.lines[i].isChosen == isChosen) paintLine(painter, i);
  painter.setPen(QPen(theme().text, 1.5, Qt::DashLine));
  for (const ChartMark& mark : m_data.marks) {
    const double y = frame.toY(mark.at);
    painter.drawLine(QPointF(frame.rect.left(), y), QPointF(frame.rect.right(), y));
  }
  std::vector<QRectF> taken;
  for (const ChartMark& mark : m_data.marks) taken.push_back(paintName(painter, mark, taken));  // above all lines
  if (hoveredMark() < 0) return;
  painter.setPen(QPen(theme().borderStrong, 1, Qt::DotLine));
  const double at = frame.toX(onAxis(m_data.x, m_xs[static_cast<std::size_t>(hoveredMark())]));
  painter.drawLine(QPointF(at, frame.rect.top()), QPointF(at, frame.rect.bottom()));
}

/// The title, and at the right the names of the lines, or the readout at the pointer.
void LineChart::paintHead(QPainter& painter, const QRectF& head) const {
  const Theme theme = Theme::of(palette());
  const QFont plain = painter.font();
  painter.setFont(strongFont(plain));
  painter.setPen(theme.text);
  painter.drawText(head, Qt::AlignLeft | Qt::AlignVCenter, m_data.title);
  double left = head.left() + painter.fontMetrics().horizontalAdvance(m_data.title) + 16;
  painter.setFont(plain);
  const QFontMetrics metrics = painter.fontMetrics();
  if (hoveredMark() >= 0) {
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

void LineChart::paintSections(QPainter& painter) const {
  const Theme theme = this->theme();
  const QRectF room = axes()->strip(font());
  const QFontMetrics metrics = painter.fontMetrics();
  const auto x = [&](double value) {
    return std::clamp(axes()->frame.toX(onAxis(m_data.x, value)), room.left(), room.right());
  };
  for (std::size_t i = 0; i < m_data.sections.size(); ++i) {
    const double from = x(m_data.sections[i].from);
    const double to = i + 1 < m_data.sections.size() ? x(m_data.sections[i + 1].from) : room.right();
    const QRectF strip(from, room.top(), to - from, room.height() - 2);
    painter.fillRect(strip, i % 2 == 0 ? theme.groundSunken : blend(theme.groundSunken, theme.text, 0.12));
    painter.setPen(QPen(theme.border, 1));
    painter.drawLine(strip.topLeft(), strip.bottomLeft());
    if (metrics.horizontalAdvance(m_data.sections[i].name) + 6 > strip.width()) continue;
    painter.setPen(theme.text);
    painter.drawText(strip, Qt::AlignCenter, m_data.sections[i].name);
  }
}

void LineChart::paintLine(QPainter& painter, std::size_t number) const {
  const ChartLine& line = m_data.lines[number];
  QPainterPath path;
  bool isOpen = false;
  for (const QPointF& point : line.points) {
    if (!std::isfinite(point.y())) {
      isOpen = false;
      continue;
    }
    const QPointF at = positionOf(point);
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
    if (std::isfinite(point.y())) painter.drawEllipse(positionOf(point), 2.4, 2.4);
}

bool LineChart::coversLine(const QRectF& plate) const {
  for (const ChartMark& mark : m_data.marks)
    if (plate.contains({plate.center().x(), axes()->frame.toY(mark.at)})) return true;
  for (const ChartLine& line : m_data.lines) {
    for (std::size_t i = 0; i + 1 < line.points.size(); ++i) {
      const QPointF &from = line.points[i], &to = line.points[i + 1];
      if (!std::isfinite(from.y()) || !std::isfinite(to.y())) continue;
      const QLineF drawn(positionOf(from), positionOf(to));
      constexpr int kSamples = 16;
      for (int k = 0; k <= kSamples; ++k)
        if (plate.contains(drawn.pointAt(static_cast<double>(k) / kSamples))) return true;
    }
  }
  return false;
}

/// Places the name above the mark, or else below it, where it covers no line, mark or name if possible: a name on
/// another mark's line would be read as that mark's name.
QRectF LineChart::placeForName(const ChartMark& mark, QRectF plate, std::span<const QRectF> taken) const {
  constexpr int kPlaces = 12;
  const QRectF& plot = axes()->frame.rect;
  const double y = axes()->frame.toY(mark.at);
  const auto isFree = [&](const QRectF& place) {
    return place.top() >= plot.top() && place.bottom() <= plot.bottom() && !coversLine(place) &&
           std::ranges::none_of(taken, [&](const QRectF& other) { return other.intersects(place); });
  };
  // Marks close to each other have their names at different places.
  const double first = static_cast<double>(&mark - m_data.marks.data()) / static_cast<double>(m_data.marks.size());
  const double room = plot.width() - plate.width();
  for (int i = 0; i < kPlaces; ++i) {
    plate.moveLeft(plot.left() + (1 - std::fmod(first + static_cast<double>(i) / kPlaces, 1.0)) * room);
    plate.moveBottom(y - 1);
    if (isFree(plate)) return plate;
    plate.moveTop(y + 1);
    if (isFree(plate)) return plate;
  }
  plate.moveLeft(plot.left() + (1 - first) * room);
  plate.moveBottom(y - 1);
  if (plate.top() < plot.top()) plate.moveTop(y + 1);
  return plate;
}

QRectF LineChart::paintName(QPainter& painter, const ChartMark& mark, std::span<const QRectF> taken) const {
  const Theme theme = this->theme();
  const QString text = QStringLiteral("%1 %2").arg(mark.name, this->text(m_data.y, mark.at));
  const QFontMetrics metrics = painter.fontMetrics();
  const QRectF plate = placeForName(mark, QRectF(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height()), taken);
  painter.fillRect(plate, theme.ground);
  painter.setPen(theme.text);
  painter.drawText(plate, Qt::AlignCenter, text);
  return plate;
}

int LineChart::markAt(const QPointF& position) const {
  if (!axes() || m_xs.empty()) return -1;
  const double x = axes()->frame.fromX(position.x()) / onAxis(m_data.x, 1);
  const auto above = std::lower_bound(m_xs.begin(), m_xs.end(), x);
  const bool isBelowNearer = above == m_xs.end() || (above != m_xs.begin() && x - above[-1] < *above - x);
  return static_cast<int>(above - m_xs.begin()) - (isBelowNearer ? 1 : 0);
}

QString LineChart::readout() const {
  if (m_xs.empty()) return {};
  const double x = hoveredMark() >= 0 ? m_xs[static_cast<std::size_t>(hoveredMark())] : m_xs.back();
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

}  // namespace cleave::views
