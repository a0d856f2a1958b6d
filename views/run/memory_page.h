#pragma once
/// The page of memory: each rank's memory by category in the recorded step, with the prediction; the numbers of one
/// rank; and the nodes with the largest deviations.
#include <QScrollArea>
#include <QWidget>

#include "views/session/runs.h"
#include "views/session/selection.h"

class QLabel;
class QSplitter;
class QStackedLayout;

namespace cleave::views {

class LinkText;

/// Two bars per rank, predicted and measured, with their parts in sequence. A click or the arrow keys select a rank.
class MemoryBars : public QWidget {
  Q_OBJECT
 public:
  explicit MemoryBars(QWidget* parent = nullptr);
  void setMemory(const std::map<int, pipeline::MemoryComparison>& byRank);
  int chosen() const { return m_chosen; }    ///< a rank
  int rankAt(const QPoint& position) const;  ///< -1: none
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void chosenChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void choose(int row);
  int rowHeight() const;
  int legendHeight() const;
  int nameWidth() const;
  int tailWidth() const;
  void paintLegend(QPainter& painter) const;
  void paintBar(QPainter& painter, const QRectF& bar, const pipeline::MemoryComparison& memory,
                bool isPrediction) const;
  std::vector<std::pair<int, pipeline::MemoryComparison>> m_ranks;
  std::int64_t m_most = 1;
  int m_chosen = 0;
};

class MemoryPage : public QWidget {
  Q_OBJECT
 public:
  MemoryPage(const Runs& runs, Selection& selection, QWidget* parent = nullptr);
  void showRun();

 signals:
  void graphWanted();

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void showRank();
  const Runs& m_runs;
  MemoryBars* m_bars;
  QScrollArea* m_scroll;  ///< around the numbers
  LinkText* m_numbers;
  QSplitter* m_split;
  QLabel* m_empty;
  QWidget* m_content;
  QStackedLayout* m_stack;
};

}  // namespace cleave::views
