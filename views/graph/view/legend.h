#pragma once
/// The strip above the drawing: strategies of layers and placements of values with their numbers (legend_drawing.h). A
/// click shows only the chosen entry. The right end shows the canvas's status (zoom, running layout, simplified
/// layout).
#include <QWidget>

#include "views/graph/scene/legend_drawing.h"

namespace cleave::views {

class Legend : public QWidget {
  Q_OBJECT
 public:
  explicit Legend(QWidget* parent);
  void setTheme(const Theme& theme);
  void setContent(const LegendContent& content);
  const LegendContent& content() const { return m_drawing.content(); }
  void setStatus(const QString& status);
  const SplitFilter& filter() const { return m_filter; }
  int heightForWidth(int width) const override;
  /// The rectangle of a strategy's or placement's entry, for tests and tours. Empty: no such entry.
  QRect entryRect(LayerSplit split) const;
  QRect entryRect(Tint tint) const;
  QStringList entryTexts() const;

 signals:
  void filterChanged(const cleave::views::SplitFilter& filter);
  void heightChanged();  ///< it needs another height for its width

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void arrange();
  int reserved() const;
  QRect statusRoom() const;
  void toggle(const LegendDrawing::Entry& entry);
  void moveFocus(int by);

  LegendDrawing m_drawing;
  Theme m_theme;
  SplitFilter m_filter;
  QString m_status;
  int m_focus = 0;            ///< index of an entry
  bool m_showsFocus = false;  ///< reached by keyboard
};

}  // namespace cleave::views
