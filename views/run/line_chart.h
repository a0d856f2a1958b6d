#pragma once
/// Lines over an axis: memory over time, losses over steps. A readout shows the values at the pointer.
///
///     chart->setData({.x = ChartUnit::Milliseconds, .y = ChartUnit::Bytes, .lines = {{QStringLiteral("rank 0"),
///     points}},
///                     .marks = {{QStringLiteral("predicted"), 4096}}});
#include <QPointF>
#include <QWidget>
#include <optional>
#include <vector>

#include "views/widgets/plot_axis.h"

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

class LineChart : public QWidget {
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
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  struct Axes {
    PlotAxis x, y;
    QRectF plot;
    QPointF at(const QPointF& point) const;
  };
  std::optional<Axes> axes() const;
  QString text(ChartUnit unit, double value) const;
  QColor colorOf(std::size_t line) const;
  void paintHead(QPainter& painter, const QRectF& head) const;
  void paintAxes(QPainter& painter, const Axes& axes) const;
  void paintSections(QPainter& painter, const Axes& axes) const;
  void paintLine(QPainter& painter, const Axes& axes, std::size_t number) const;
  void paintMark(QPainter& painter, const Axes& axes, const ChartMark& mark) const;
  /// Returns the name's rectangle. It avoids `taken` if there is room next to it.
  QRectF paintName(QPainter& painter, const Axes& axes, const ChartMark& mark, std::span<const QRectF> taken) const;
  QRectF placeForName(const Axes& axes, const ChartMark& mark, QRectF plate, std::span<const QRectF> taken) const;
  static double heightOf(const Axes& axes, const ChartMark& mark);  ///< y in pixels
  bool coversLine(const Axes& axes, const QRectF& plate) const;
  std::optional<double> nearest(const Axes& axes) const;  ///< x of the point nearest to the pointer
  ChartData m_data;
  std::optional<QPointF> m_pointer;
};

}  // namespace cleave::views
