#pragma once
/// A range of values, and an axis with round ticks in one unit, for painted plots.
///
///     const PlotAxis axis = PlotAxis::ofTime(900'000'000'000, 4'200'000'000'000, 6);
///     axis.unit() == "ms";  axis.label(axis.ticks()[0]) == "1.0";  axis.share(value) // 0 at the low end, 1 at the
///     high end
#include <QString>
#include <vector>

#include "base/femtoseconds.h"

namespace cleave::views {

struct PlotRange {
  double low = 0, high = 1;
  double length() const { return high - low; }
  double share(double value) const { return (value - low) / (high - low); }
  double at(double share) const { return low + share * (high - low); }
  bool holds(double value) const { return low <= value && value <= high; }
  /// Moved into `all`, and not shorter than `least` nor longer than `all`.
  PlotRange within(const PlotRange& all, double least) const;
  /// `factor` below 1 zooms in. The pivot keeps its share. The result is within `all`.
  PlotRange zoomed(double factor, double pivot, const PlotRange& all, double least) const;
};

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

  /// With the name of what it measures: "time per step".
  PlotAxis named(QString name) const;

  const PlotRange& range() const { return m_range; }
  double low() const { return m_range.low; }
  double high() const { return m_range.high; }
  double share(double value) const { return m_range.share(value); }
  bool holds(double value) const { return m_range.holds(value); }
  const std::vector<double>& ticks() const { return m_ticks; }  ///< in femtoseconds or bytes, ascending
  const QString& name() const { return m_name; }
  const QString& unit() const { return m_unit; }
  QString title() const;             ///< name and unit, whichever there are: "time per step, ms"
  QString label(double tick) const;  ///< in `unit`, with enough decimals to distinguish ticks

 private:
  PlotAxis(double low, double high, double unitSize, QString unit, int most, double leastStep = 0);
  std::vector<double> ticksOf(double step) const;
  PlotRange m_range;
  double m_unitSize = 1;
  QString m_name, m_unit;
  int m_decimals = 0;
  std::vector<double> m_ticks;
};

}  // namespace cleave::views
