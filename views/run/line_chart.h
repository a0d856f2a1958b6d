#pragma once
/// Lines over an axis: memory over time, losses over steps. A readout shows the values at the pointer.
///
///     chart->setData({.x = ChartUnit::Milliseconds, .y = ChartUnit::Bytes, .lines = {{QStringLiteral("rank 0"),
///     points}},
///                     .marks = {{QStringLiteral("predicted"), 4096}}});
#include <QPointF>
#include <vector>

#include "views/widgets/plot_widget.h"

namespace cleave::views {

enum class ChartUnit : std::uint8_t { Bytes, Milliseconds, Whole, Number };

struct ChartLine {
  QString name;
  std::vector<QPointF> points;  ///< by x, ascending; NaN leaves a gap
  bool isChosen = false;        ///< drawn bold, over the others
};
/// A horizontal line across the chart.
struct ChartMark {
  QString name;
  double at = 0;
};
/// A named section of the x axis, in a strip below it, up to the next section.
struct ChartSection {
  double from = 0;
  QString name;
};

struct ChartData {
  QString title;  ///< "loss", "memory of the program"
  QString empty;  ///< text without lines
  ChartUnit x = ChartUnit::Number, y = ChartUnit::Number;
  QString xName;  ///< "step"
  std::vector<ChartLine> lines;
  std::vector<ChartMark> marks;
  std::vector<ChartSection> sections;
};

class LineChart : public PlotWidget {
  Q_OBJECT
 public:
  explicit LineChart(QWidget* parent = nullptr);
  void setData(ChartData data);
  const ChartData& data() const { return m_data; }
  /// The latest readout: "step 3 · rank 0: 4.2".
  QString readout() const;
  QSize sizeHint() const override { return {360, 220}; }
  QSize minimumSizeHint() const override { return {180, 120}; }

 protected:
  void paintPlot(QPainter& painter) override;
  std::optional<PlotAxes> makeAxes(const QRectF& plot) const override;
  double stripHeight() const override;
  /// The marks are the values of x that have points. The pointer reads the nearest one.
  int markCount() const override { return static_cast<int>(m_xs.size()); }
  int markAt(const QPointF& position) const override;
  QString description() const override { return readout(); }

 private:
  QPointF positionOf(const QPointF& point) const;  ///< needs axes
  QString text(ChartUnit unit, double value) const;
  QColor colorOf(std::size_t line) const;
  void paintHead(QPainter& painter, const QRectF& head) const;
  void paintSections(QPainter& painter) const;
  void paintLine(QPainter& painter, std::size_t number) const;
  /// Returns the name's rectangle. It avoids `taken` if there is room next to it.
  QRectF paintName(QPainter& painter, const ChartMark& mark, std::span<const QRectF> taken) const;
  QRectF placeForName(const ChartMark& mark, QRectF plate, std::span<const QRectF> taken) const;
  bool coversLine(const QRectF& plate) const;
  ChartData m_data;
  std::vector<double> m_xs;  ///< ascending
};

}  // namespace cleave::views
