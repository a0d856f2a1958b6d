#pragma once
/// Time against memory: every plan that no other plan beats in both, as steps over bytes per rank. The plot does not
/// depend on the session.
///
/// Readable without colour: the front is a line with discs, the current plan a diamond, the budget a dashed line, and
/// the area beyond the budget is hatched. Arrows, Home and End move between points; Enter or a double click uses one.
#include <optional>
#include <vector>

#include "solve/optimal/optimum.h"
#include "views/widgets/plot_widget.h"

namespace cleave::views {

struct ParetoData {
  solve::Optimum::Front front;                ///< points in any order
  std::optional<solve::ParetoPoint> present;  ///< the plan shown now; bytes of a rank
  std::optional<std::int64_t> budgetBytes;
};

class ParetoPlot : public PlotWidget {
  Q_OBJECT
 public:
  explicit ParetoPlot(QWidget* parent = nullptr);
  /// Keeps the current point if the new front has it. Otherwise the shown plan's point becomes current.
  void setData(ParetoData data);

  int count() const { return static_cast<int>(m_data.front.points.size()); }
  /// Points from the one with the fewest bytes to the fastest.
  const solve::ParetoPoint& point(int index) const { return m_data.front.points[static_cast<std::size_t>(index)]; }
  int current() const { return currentMark(); }  ///< -1: none
  void setCurrent(int index) { setCurrentMark(index); }
  QPointF positionOf(const solve::ParetoPoint& point) const;
  int pointAt(const QPointF& position) const;  ///< the nearest one within reach; -1: no point is near
  /// The hovered point, else the current one, in words: "3.42 ms · 1.10 GiB per rank · …".
  QString readout() const;
  /// The number of plans, and what was left out.
  QString summary() const;

  QSize sizeHint() const override { return {420, 300}; }
  QSize minimumSizeHint() const override { return {220, 150}; }

 signals:
  void readoutChanged();
  void pointUsed(const cleave::solve::ParetoPoint& point);

 protected:
  void paintPlot(QPainter& painter) override;
  std::optional<PlotAxes> makeAxes(const QRectF& plot) const override;
  int markCount() const override { return count(); }
  int markAt(const QPointF& position) const override { return pointAt(position); }
  QString description() const override { return readout(); }
  PlotKeys keys(Qt::KeyboardModifiers modifiers) const override;  ///< with Ctrl by tenths
  void currentMarkChanged() override { emit readoutChanged(); }
  void hoveredMarkChanged() override { emit readoutChanged(); }
  bool useMark(int mark) override;

 private:
  void paintAreas(QPainter& painter) const;
  void paintBudget(QPainter& painter) const;
  void paintFront(QPainter& painter) const;
  void paintPresent(QPainter& painter) const;
  QPolygonF steps() const;  ///< from the left end of the plot to its right end

  ParetoData m_data;
};

}  // namespace cleave::views
