#pragma once
/// The strip above the drawing: a swatch, a name and a count for each kind of placement in the graph; a click dims the
/// others. Where colours say amounts: their scale with numbers instead. At its right end: what the canvas has to say
/// (zoom, layout running, simplified).
#include <QWidget>
#include <array>

#include "canvas/theme.h"

namespace cleave::views {

/// The scale of amounts: what they are, and numbers along it.
struct HeatScale {
  QString title;      ///< empty: there is no scale, colours say placements
  QStringList ticks;  ///< at equal distances from the least to the most; empty: nothing to show yet
  QString note;       ///< "folded: Σ sum"; without ticks: why there is nothing
  bool operator==(const HeatScale&) const = default;
};

class Legend : public QWidget {
  Q_OBJECT
 public:
  explicit Legend(QWidget* parent);
  void setTheme(const Theme& theme);
  void setCounts(const std::array<std::uint32_t, kTintCount>& counts, std::uint32_t conflicts);
  void setScale(const HeatScale& scale);
  void setChanged(std::size_t nodes);  ///< outlined as changed between two plans; 0: no entry
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
  int paintTints(QPainter& painter) const;  ///< these three answer where they end
  int paintScale(QPainter& painter, int left) const;
  int paintChanged(QPainter& painter, int left) const;
  void arrange();
  void toggle(Tint tint);

  Theme m_theme;
  std::array<std::uint32_t, kTintCount> m_counts{};
  std::uint32_t m_conflicts = 0;
  std::uint32_t m_chosen = 0;  ///< bit per Tint; 0: all
  QString m_status;
  HeatScale m_scale;
  std::size_t m_changed = 0;
  std::vector<Entry> m_entries;
  int m_focus = 0;
  bool m_showsFocus = false;  ///< reached by keyboard
};

}  // namespace cleave::views
