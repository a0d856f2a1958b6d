#pragma once
/// An axis with round ticks in one unit, for hand-painted plots.
///
///     const PlotAxis axis = PlotAxis::ofTime(900'000'000'000, 4'200'000'000'000, 6);
///     axis.unit() == "ms";  axis.label(axis.ticks()[0]) == "1.0";  axis.share(value) // 0 at the low end, 1 at the
///     high end
#include <QString>
#include <vector>

#include "base/femtoseconds.h"

namespace cleave::views {

class PlotAxis {
 public:
  PlotAxis() = default;
  /// Femtoseconds, labelled in the decimal unit of the high end. At least two ticks and roughly `most` at most. The
  /// range is widened a little on both sides, and to a visible width if low equals high.
  static PlotAxis ofTime(Femtoseconds low, Femtoseconds high, int most);
  /// Numbers without a unit. Ticks of integers are at integers only.
  static PlotAxis ofNumbers(double low, double high, int most, bool areWhole = false);
  /// Bytes, labelled in the binary unit of the high end.
  static PlotAxis ofBytes(std::int64_t low, std::int64_t high, int most);

  double low() const { return m_low; }
  double high() const { return m_high; }
  double share(double value) const { return (value - m_low) / (m_high - m_low); }
  bool holds(double value) const { return m_low <= value && value <= m_high; }
  const std::vector<double>& ticks() const { return m_ticks; }  ///< in femtoseconds or bytes, ascending
  const QString& unit() const { return m_unit; }
  QString label(double tick) const;  ///< in `unit`, with enough decimals to distinguish ticks

 private:
  PlotAxis(double low, double high, double unitSize, QString unit, int most, double leastStep = 0);
  std::vector<double> ticksOf(double step) const;
  double m_low = 0, m_high = 1, m_unitSize = 1;
  QString m_unit;
  int m_decimals = 0;
  std::vector<double> m_ticks;
};

}  // namespace cleave::views
