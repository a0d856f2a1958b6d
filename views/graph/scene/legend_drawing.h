#pragma once
/// The legend as a drawing, for the strip above the canvas and for exported pictures. It shows the strategies of layers
/// with their numbers, then the placements of values with the meaning of their dimension, or the scale of amounts.
///
///     LegendDrawing drawing(theme, font);
///     drawing.setContent(legendContent(counts));
///     drawing.setSize({width, drawing.heightFor(width)});
///     drawing.paint(painter, filter);
#include <QFont>
#include <QPainter>
#include <array>
#include <vector>

#include "views/graph/model/split_counts.h"
#include "views/graph/scene/split_filter.h"

namespace cleave::views {

/// The scale of amounts: a title, and numbers along the scale.
struct HeatScale {
  QString title;             ///< empty: no scale; colours show placements and strategies
  QStringList ticks;         ///< at equal distances from the least to the most; empty: no amounts yet
  QString note;              ///< "folded boxes show the sum (Σ)"; without ticks: the reason
  bool isAgreement = false;  ///< one coloured cell per Agreement replaces the scale
  bool operator==(const HeatScale&) const = default;
};

struct LegendContent {
  std::array<plan::LayerTally, kLayerSplits> splits{};
  std::array<std::uint32_t, kTintCount> values{};
  std::array<QString, kTintCount> meanings;  ///< "heads", "features, vocabulary"; empty: unknown
  double flops = 0;                          ///< of all operators
  HeatScale scale;
  std::size_t changed = 0;  ///< nodes outlined as changed between two plans; 0: no entry
  bool operator==(const LegendContent&) const = default;
};
/// Numbers and meanings. The caller sets scale and changes.
void setCounts(LegendContent& content, const SplitCounts* counts);

class LegendDrawing {
 public:
  struct Entry {
    QString text;                     ///< "row  14"
    QString tooltip;                  ///< empty: the text says everything
    std::optional<LayerSplit> split;  ///< no split and no tint: part of the scale, a caption, or the sign of changes
    std::optional<Tint> tint;
    enum class Part { None, Title, Bar, Note } part = Part::None;  ///< of the scale
    bool isChange = false;
    QRect rect;
    bool isChoice() const { return split || tint; }
  };

  LegendDrawing(const Theme& theme, const QFont& font) : m_theme(theme), m_font(font) {}
  void setTheme(const Theme& theme) { m_theme = theme; }
  void setFont(const QFont& font) { m_font = font; }
  void setContent(const LegendContent& content) { m_content = content; }
  const LegendContent& content() const { return m_content; }
  /// The height for as many rows as the entries need. `reserved`: width kept free at the right of the first row, if
  /// that does not need more rows.
  int heightFor(int width, int reserved = 0) const;
  void arrange(const QSize& size, int reserved, const SplitFilter& filter);
  const std::vector<Entry>& entries() const { return m_entries; }
  QSizeF size() const { return m_size; }
  /// Right end of the entries in the first row.
  int firstRowEnd() const { return m_firstRowEnd; }
  /// `focused`: index of the entry with the keyboard focus. -1: no focus.
  void paint(QPainter& painter, const SplitFilter& filter, int focused = -1) const;

 private:
  struct Placed {
    std::vector<Entry> entries;
    int rows = 1;
  };
  /// Moves the meanings of dimensions into the tooltips if they would need another row.
  Placed placed(int width, int reserved, const SplitFilter& filter) const;
  std::vector<Entry> makeEntries(const SplitFilter& filter, bool hasMeanings) const;
  std::vector<Entry> scaleEntries() const;
  void fitScale(std::vector<Entry>& entries, int width) const;
  int place(std::vector<Entry>& entries, int width, int reserved) const;
  int rowHeight() const;
  int widthOf(const Entry& entry) const;
  void paintEntry(QPainter& painter, const Entry& entry, const SplitFilter& filter, bool isFocused) const;
  void paintBar(QPainter& painter, const QRect& rect) const;
  int barCell() const;

  Theme m_theme;
  QFont m_font;
  LegendContent m_content;
  QSize m_size;
  std::vector<Entry> m_entries;
  int m_firstRowEnd = 0;
};

}  // namespace cleave::views
