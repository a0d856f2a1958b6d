#pragma once
/// One strip per rank: its state, a bar of the program's memory with the dashed prediction and the peak, below it a bar
/// of the whole process with its peak, and a 60 s sparkline of the process. With many ranks the strips are side by
/// side, each with one line of text and the program's bar. A click or the arrow keys select a rank.
#include <QWidget>
#include <vector>

#include "views/session/run_monitor.h"

namespace cleave::views {

class RankBars : public QWidget {
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
  int chosen() const { return m_chosen; }

 signals:
  void rankChosen(int rank);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void choose(int rank);
  void describeChosen();
  QString textOf(const RankView& rank) const;
  bool isInFull() const;  ///< few enough ranks for full strips
  int columns(int width) const;
  int rowHeight() const;
  int legendHeight() const;
  void paintRank(QPainter& painter, const QRect& row, const RankView& rank) const;
  void paintShort(QPainter& painter, const QRect& cell, const RankView& rank) const;
  void paintPrediction(QPainter& painter, const QRect& bar) const;
  double xOf(const QRect& bar, std::int64_t bytes) const;
  void paintBar(QPainter& painter, const QRect& bar, const RankMemory& memory, int parts, std::int64_t peak) const;
  void paintSpark(QPainter& painter, const QRect& rect, const RankView& rank) const;
  void paintLegend(QPainter& painter, const QRect& row) const;
  std::vector<RankView> m_ranks;
  std::int64_t m_predicted = 0;
  std::int64_t m_scale = 1;  ///< bytes at the right end of all bars
  std::int64_t m_sparkTop = 1;
  int m_chosen = 0;
  bool m_showsProcess = true;  ///< the scale fits the memory of the process
};

}  // namespace cleave::views
