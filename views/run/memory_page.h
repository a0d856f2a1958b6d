#pragma once
/// The page of memory: each rank's memory by category in the recorded step, with the prediction; the numbers of one
/// rank; and the nodes with the largest deviations.
#include <QScrollArea>

#include "views/session/runs.h"
#include "views/session/selection.h"
#include "views/widgets/plot_legend.h"
#include "views/widgets/plot_widget.h"

class QLabel;
class QSplitter;
class QStackedLayout;

namespace cleave::views {

class LinkText;

/// Two bars per rank, predicted and measured, with their parts in sequence. A click or the arrow keys select a rank.
class MemoryBars : public PlotWidget {
  Q_OBJECT
 public:
  explicit MemoryBars(QWidget* parent = nullptr);
  void setMemory(const std::map<int, pipeline::MemoryComparison>& byRank);
  int chosen() const;                        ///< a rank
  int rankAt(const QPoint& position) const;  ///< -1: none
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void chosenChanged();

 protected:
  void paintPlot(QPainter& painter) override;
  bool hasGround() const override { return false; }
  int markCount() const override { return static_cast<int>(m_ranks.size()); }
  int markAt(const QPointF& position) const override;
  PlotTip tipOf(int mark) const override;
  PlotKeys keys(Qt::KeyboardModifiers) const override { return {.along = 0, .across = 1}; }
  void currentMarkChanged() override { emit chosenChanged(); }
  void resizeEvent(QResizeEvent* event) override;

 private:
  int rowHeight() const;
  QRect rowOf(int mark) const;
  int legendHeight() const { return legend().heightFor(width() - 2 * kSide) + 4; }
  int nameWidth() const;
  int tailWidth() const;
  PlotLegend legend() const;
  void paintBar(QPainter& painter, const QRectF& bar, const pipeline::MemoryComparison& memory,
                bool isPrediction) const;
  static constexpr int kSide = 8;
  std::vector<std::pair<int, pipeline::MemoryComparison>> m_ranks;
  std::int64_t m_most = 1;
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
