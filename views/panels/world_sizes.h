#pragma once
/// How a model does on 1 to 64 ranks, a cell each, and what that means in words. Painted by hand; a verdict is told by
/// its sign as much as by its colour: ✓ works, ◐ partly, – nothing splits, = does not pay, ○ not asked for, ✕ no
/// solution, ■ over the budget, and a corner where an engine that does not look at the budget goes beyond it.
#include <QWidget>
#include <optional>
#include <vector>

#include "plan/world_sizes.h"

namespace cleave::views {

/// "4 ranks: every layer that can be split is split, 30 of 33; 1.20 GiB per rank, 3.10 ms per step."
QString worldSizeText(const plan::WorldSize& size);
/// The same, and for a number of ranks that is over the budget all that its ranks hold.
QString worldSizeReason(const plan::WorldSize& size);

class WorldSizeStrip : public QWidget {
  Q_OBJECT
 public:
  explicit WorldSizeStrip(QWidget* parent = nullptr);
  /// `count`: cells to draw, whether they were tried or not.
  void setSizes(std::vector<plan::WorldSize> sizes, int count);
  /// The number of ranks of the next solve, outlined.
  void setChosen(int ranks);

  int current() const { return m_current; }  ///< the rank count whose cell has the keyboard; 1 at first
  void setCurrent(int ranks);
  QRect cellOf(int ranks) const;
  int ranksAt(const QPoint& position) const;  ///< 0: none
  /// The hovered cell, else the current one.
  int told() const { return m_hovered ? m_hovered : m_current; }
  /// What that cell says.
  QString detail() const;
  /// What a cell's tooltip says: worldSizeReason.
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
  void paintEvent(QPaintEvent* event) override;
  /// A nested layout does not ask for heightForWidth: the strip demands all its rows itself.
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QSize cellSize() const;
  int columns(int width) const;
  void hover(int ranks);
  static QString notTried(int ranks);
  void paintCell(QPainter& painter, int ranks) const;
  void paintLegend(QPainter& painter) const;

  std::vector<plan::WorldSize> m_sizes;
  int m_count = 64;
  int m_chosen = 0, m_current = 1, m_hovered = 0;
};

}  // namespace cleave::views
