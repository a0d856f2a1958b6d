#include "views/widgets/plot_axis.h"

#include <algorithm>
#include <cmath>

namespace cleave::views {

namespace {
constexpr double kRangeMargin = 0.06;  ///< relative margin on both sides, so that points on the edge are not cut off

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
double niceStep(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}
}  // namespace

PlotRange PlotRange::within(const PlotRange& all, double least) const {
  const double kept = std::clamp(length(), std::min(least, all.length()), all.length());
  const double from = std::clamp(low, all.low, all.high - kept);
  return {from, from + kept};
}

PlotRange PlotRange::zoomed(double factor, double pivot, const PlotRange& all, double least) const {
  // At a limit the pivot still keeps its share, so the length is limited first.
  const double kept = std::clamp(length() * factor, std::min(least, all.length()), all.length());
  const double from = pivot - share(pivot) * kept;
  return PlotRange{from, from + kept}.within(all, least);
}

PlotAxis::PlotAxis(double low, double high, double unitSize, QString unit, int most, double leastStep)
    : m_unitSize(unitSize), m_unit(std::move(unit)) {
  const double range = high > low ? high - low : std::max(std::abs(high) * 0.2, unitSize * 0.1);
  const double margin = high > low ? range * kRangeMargin : range / 2;
  m_range.low = std::max(low - margin, low >= 0 ? 0.0 : low - margin);
  m_range.high = high + margin;
  // A single tick shows a position but no scale.
  double step = std::max(leastStep, niceStep((m_range.high - m_range.low) / unitSize / std::max(1, most)));
  for (m_ticks = ticksOf(step * unitSize); m_ticks.size() < 2 && step > leastStep; m_ticks = ticksOf(step * unitSize))
    step = std::max(leastStep, niceStep(step / 2.5));
  m_decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
}

std::vector<double> PlotAxis::ticksOf(double step) const {
  std::vector<double> ticks;
  for (double tick = std::ceil(m_range.low / step - 1e-9); tick * step <= m_range.high * (1 + 1e-12); ++tick)
    ticks.push_back(tick * step);
  return ticks;
}

PlotAxis PlotAxis::ofNumbers(double low, double high, int most, bool areWhole) {
  return PlotAxis(low, high, 1, {}, most, areWhole ? 1 : 0);
}

PlotAxis PlotAxis::ofTime(Femtoseconds low, Femtoseconds high, int most) {
  static const char* const kUnits[] = {"fs", "ps", "ns", "µs", "ms", "s"};
  double size = 1;
  int unit = 0;
  while (unit < 5 && static_cast<double>(high) >= size * 1000) size *= 1000, ++unit;
  return PlotAxis(static_cast<double>(low), static_cast<double>(high), size, QString::fromUtf8(kUnits[unit]), most);
}

PlotAxis PlotAxis::ofBytes(std::int64_t low, std::int64_t high, int most) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double size = 1;
  int unit = 0;
  while (unit < 5 && static_cast<double>(high) >= size * 1024) size *= 1024, ++unit;
  return PlotAxis(static_cast<double>(low), static_cast<double>(high), size, QString::fromLatin1(kUnits[unit]), most);
}

PlotAxis PlotAxis::named(QString name) const {
  PlotAxis axis = *this;
  axis.m_name = std::move(name);
  return axis;
}

QString PlotAxis::title() const {
  return m_name.isEmpty() || m_unit.isEmpty() ? m_name + m_unit : QStringLiteral("%1, %2").arg(m_name, m_unit);
}

QString PlotAxis::label(double tick) const { return QString::number(tick / m_unitSize, 'f', m_decimals); }

}  // namespace cleave::views
