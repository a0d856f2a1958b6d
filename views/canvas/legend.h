#pragma once
/// The strip above the drawing: a swatch, a name and a count for each kind of placement in the graph; a click dims the
/// others. At its right end: what the canvas has to say (zoom, layout running, simplified).
#include <QWidget>
#include <array>

#include "canvas/theme.h"

namespace cleave::views {

class Legend : public QWidget {
  Q_OBJECT
 public:
  explicit Legend(QWidget* parent);
  void setTheme(const Theme& theme);
  void setCounts(const std::array<std::uint32_t, kTintCount>& counts, std::uint32_t conflicts);
  void setStatus(const QString& status);
  /// Bit per Tint that is dimmed.
  std::uint32_t dimmedTints() const;
  QSize sizeHint() const override;

 signals:
  void filterChanged(std::uint32_t dimmedTints);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Entry {
    Tint tint;
    QRect rect;
  };
  QString entryText(Tint tint) const;
  void arrange();
  void toggle(Tint tint);

  Theme m_theme;
  std::array<std::uint32_t, kTintCount> m_counts{};
  std::uint32_t m_conflicts = 0;
  std::uint32_t m_chosen = 0;  ///< bit per Tint; 0: all
  QString m_status;
  std::vector<Entry> m_entries;
  int m_focus = 0;
  bool m_showsFocus = false;  ///< reached by keyboard
};

}  // namespace cleave::views
