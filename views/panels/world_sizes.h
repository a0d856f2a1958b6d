#pragma once
/// A model's verdicts on 1 to 64 ranks, one cell each, with an explanation. Painted by hand. Each verdict has a sign as
/// well as a colour: ✓ works, ◐ partly, – nothing splits, = does not pay, ○ needs a setting, ✕ no solution, ■ over the
/// budget. A cell's corner marks an engine that ignores the budget and exceeds it.
#include <vector>

#include "plan/build/world_sizes.h"
#include "views/widgets/plot_legend.h"
#include "views/widgets/plot_widget.h"

namespace cleave::views {

/// "4 ranks: every layer that can be split is split, 30 of 33; 1.20 GiB per rank, 3.10 ms per step."
QString worldSizeText(const plan::WorldSize& size);
/// The same text, and for a rank count over the budget also the details of memory per rank.
QString worldSizeReason(const plan::WorldSize& size);

class WorldSizeStrip : public PlotWidget {
  Q_OBJECT
 public:
  explicit WorldSizeStrip(QWidget* parent = nullptr);
  /// `count`: number of cells, tried or not.
  void setSizes(std::vector<plan::WorldSize> sizes, int count);
  /// The rank count of the next solve, outlined.
  void setChosen(int ranks);

  int current() const { return currentMark() + 1; }  ///< rank count of the cell with the keyboard focus; 1 at first
  void setCurrent(int ranks);
  QRect cellOf(int ranks) const;
  int ranksAt(const QPoint& position) const;  ///< 0: none
  /// The rank count of the hovered cell, else of the current one.
  int shownRanks() const { return shownMark() + 1; }
  /// The text for that cell.
  QString detail() const;
  /// The text of a cell's tooltip: worldSizeReason.
  QString reason(int ranks) const;
  const plan::WorldSize* sizeOf(int ranks) const;

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void chosen(int ranks);
  void detailChanged();

 protected:
  void paintPlot(QPainter& painter) override;
  bool hasGround() const override { return false; }
  int markCount() const override { return m_count; }
  int markAt(const QPointF& position) const override { return ranksAt(position.toPoint()) - 1; }
  PlotTip tipOf(int mark) const override { return {reason(mark + 1), cellOf(mark + 1)}; }
  QString description() const override { return detail(); }
  PlotKeys keys(Qt::KeyboardModifiers) const override { return {.across = columns(width())}; }
  void currentMarkChanged() override { emit detailChanged(); }
  void hoveredMarkChanged() override { emit detailChanged(); }
  void markClicked(int mark, bool wasCurrent) override;
  bool useMark(int mark) override;
  /// A nested layout does not use heightForWidth, so the strip reserves the height of all its rows.
  void resizeEvent(QResizeEvent* event) override;

 private:
  QSize cellSize() const;
  int columns(int width) const;
  static QString notTried(int ranks);
  void paintCell(QPainter& painter, int ranks) const;
  PlotLegend legend() const;

  std::vector<plan::WorldSize> m_sizes;
  int m_count = 64;
  int m_chosen = 0;
};

}  // namespace cleave::views
