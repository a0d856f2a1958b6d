#pragma once
/// A painted plot whose marks (points, cells, bars) the pointer reads and the keyboard selects. A derived class says
/// its axes, its marks and their texts; this class keeps the hovered and the current mark, moves between marks with the
/// keys, shows tooltips, and caches the axes.
///
///     class Dots : public PlotWidget {
///       int markCount() const override { return 3; }
///       int markAt(const QPointF& position) const override { ... }             // -1: none
///       PlotTip tipOf(int mark) const override { return {QStringLiteral("dot %1").arg(mark)}; }
///       std::optional<PlotAxes> makeAxes(const QRectF& plot) const override { return PlotAxes(plot, x, y); }
///       void paintPlot(QPainter& painter) override { axes()->paint(painter, theme()); ... }
///     };
///
/// After new data the derived class calls `dataChanged`.
#include <QWidget>
#include <optional>

#include "views/base/theme.h"
#include "views/widgets/plot_frame.h"

namespace cleave::views {

/// How far keys move between marks.
struct PlotKeys {
  int along = 1;   ///< by Left and Right, up to the first and the last mark; 0: they do not move
  int across = 0;  ///< by Up and Down, if there is such a mark: the marks per row; 0: like Left and Right
  Qt::Key first = Qt::Key_Home, last = Qt::Key_End;
};

/// A tooltip, and the part of the plot that it is for.
struct PlotTip {
  QString text;
  QRect area = {};
};

class PlotWidget : public QWidget {
  Q_OBJECT
 public:
  int currentMark() const { return m_current; }  ///< selected by click or keys; -1: none
  int hoveredMark() const { return m_hovered; }  ///< -1: none
  int shownMark() const { return m_hovered >= 0 ? m_hovered : m_current; }
  void setCurrentMark(int mark);

 protected:
  /// `current`: the first current mark.
  PlotWidget(const QString& accessibleName, QWidget* parent, int current = -1);

  // ---- what is shown
  virtual void paintPlot(QPainter& painter) = 0;
  virtual QString emptyText() const { return {}; }  ///< instead of the plot; empty: there is something to paint
  virtual bool hasGround() const { return true; }   ///< false: the panel's background shows through
  /// The axes for the present data, if there are data. `plot`: the rectangle for the marks.
  virtual std::optional<PlotAxes> makeAxes(const QRectF& plot) const;
  virtual double stripHeight() const { return 0; }  ///< of a strip below the x axis's labels

  // ---- marks
  virtual int markCount() const { return 0; }
  virtual int markAt(const QPointF& position) const;
  virtual PlotTip tipOf(int mark) const;
  virtual PlotTip tipAt(const QPointF& position) const;  ///< of the mark there, if not overridden
  virtual QString description() const;                   ///< for screen readers; the current mark's tip by default
  virtual PlotKeys keys(Qt::KeyboardModifiers modifiers) const;

  // ---- what happened
  virtual void currentMarkChanged() {}
  virtual void hoveredMarkChanged() {}
  virtual void markClicked([[maybe_unused]] int mark, [[maybe_unused]] bool wasCurrent) {}
  /// Enter or Space (`mark` may be -1) or a double click. False: marks cannot be used.
  virtual bool useMark([[maybe_unused]] int mark) { return false; }

  // ---- for derived classes
  /// Null without data, or without room.
  const PlotAxes* axes() const;
  Theme theme() const { return Theme::of(palette()); }
  /// The marks are new, and `current` is the same as before or one that replaces it. Repaints.
  void dataChanged(int current);
  void describe();  ///< to screen readers
  /// Around the widget or a mark that has the keyboard focus.
  void paintFocus(QPainter& painter, const QRect& rect) const;

  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  bool isSelectable() const { return focusPolicy() != Qt::NoFocus; }  ///< marks can be selected, not only read
  void setHoveredMark(int mark);
  void leavePointer();
  std::optional<int> markByKey(const QKeyEvent& event) const;
  int m_current, m_hovered = -1;
  std::optional<QPointF> m_pointer;
  mutable std::optional<PlotAxes> m_axes;
  mutable QSize m_axesSize;  ///< the size that `m_axes` are for; invalid: make them again
};

}  // namespace cleave::views
