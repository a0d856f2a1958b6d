#pragma once
/// One strip per rank: its state, a bar of the program's memory with the dashed prediction and the peak, below it a bar
/// of the whole process with its peak, and a 60 s sparkline of the process. With many ranks the strips are side by
/// side, each with one line of text and the program's bar. A click or the arrow keys select a rank.
#include <vector>

#include "views/session/run_monitor.h"
#include "views/widgets/plot_widget.h"

namespace cleave::views {

class RankBars : public PlotWidget {
  Q_OBJECT
 public:
  explicit RankBars(QWidget* parent = nullptr);
  /// `predictedBytes`: for the program.
  void setRanks(std::vector<RankView> ranks, std::int64_t predictedBytes);
  QSize sizeHint() const override { return {320, heightForWidth(std::max(320, width()))}; }
  QSize minimumSizeHint() const override { return {200, heightForWidth(std::max(200, width()))}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  int rankAt(const QPoint& pos) const;   ///< -1: none
  QRect cellOf(std::size_t rank) const;  ///< the rank's rectangle
  int chosen() const { return currentMark(); }

 signals:
  void rankChosen(int rank);

 protected:
  void paintPlot(QPainter& painter) override;
  bool hasGround() const override { return false; }
  int markCount() const override { return static_cast<int>(m_ranks.size()); }
  int markAt(const QPointF& position) const override { return rankAt(position.toPoint()); }
  PlotTip tipOf(int mark) const override;
  PlotKeys keys(Qt::KeyboardModifiers modifiers) const override;
  void currentMarkChanged() override { emit rankChosen(chosen()); }
  void markClicked(int mark, bool wasCurrent) override;

 private:
  QString textOf(const RankView& rank) const;
  bool isInFull() const;  ///< few enough ranks for full strips
  int columns(int width) const;
  int rowHeight() const;
  int legendHeight() const;
  void paintRank(QPainter& painter, const QRect& row, const RankView& rank) const;
  void paintShort(QPainter& painter, const QRect& cell, const RankView& rank) const;
  void paintPrediction(QPainter& painter, const QRect& bar) const;
  PlotFrame frameOf(const QRect& bar) const { return {bar, {0, static_cast<double>(m_scale)}, {}}; }
  void paintBar(QPainter& painter, const QRect& bar, const RankMemory& memory, int parts, std::int64_t peak) const;
  void paintSpark(QPainter& painter, const QRect& rect, const RankView& rank) const;
  void paintLegend(QPainter& painter, const QRect& row) const;
  std::vector<RankView> m_ranks;
  std::int64_t m_predicted = 0;
  std::int64_t m_scale = 1;  ///< bytes at the right end of all bars
  std::int64_t m_sparkTop = 1;
  bool m_showsProcess = true;  ///< the scale fits the memory of the process
};

}  // namespace cleave::views
