#pragma once
/// The legend of a plot: a sign and a name per entry, in as many rows as they need.
///
///     PlotLegend legend(smallFont(font()));
///     legend.add(QStringLiteral("weights"), PlotLegend::swatch(color));
///     legend.paint(painter, QRect(0, 0, width(), legend.heightFor(width())), theme.textQuiet);
#include <QFont>
#include <QRect>
#include <QString>
#include <functional>
#include <vector>

class QColor;
class QPainter;

namespace cleave::views {

class PlotLegend {
 public:
  /// Paints a sign into its rectangle.
  using Sign = std::function<void(QPainter& painter, const QRectF& rect)>;
  explicit PlotLegend(const QFont& font);
  void add(QString name, Sign sign);
  static Sign swatch(const QColor& color);
  bool isEmpty() const { return m_entries.empty(); }
  int heightFor(int width) const;
  /// Rows below `rect` are left out.
  void paint(QPainter& painter, const QRect& rect, const QColor& ink) const;

 private:
  struct Entry {
    QString name;
    Sign sign;
  };
  int lineHeight() const;
  std::vector<QRect> places(int width) const;
  QFont m_font;
  std::vector<Entry> m_entries;
};

}  // namespace cleave::views
