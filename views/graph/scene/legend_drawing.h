#pragma once
/// The legend as a drawing: the same on the strip above the canvas and on exported pictures. First the strategies of
/// layers with their numbers, then the placements of values with what their dimension means; or the scale of amounts.
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

namespace cleave::views {

/// What of the drawing is shown at full strength. Nothing chosen: all.
struct SplitFilter {
  std::uint32_t splits = 0;  ///< bit per LayerSplit
  std::uint32_t tints = 0;   ///< bit per Tint
  bool isOn() const { return splits != 0 || tints != 0; }
  bool has(LayerSplit split) const { return splits & (1u << static_cast<int>(split)); }
  bool has(Tint tint) const { return tints & (1u << static_cast<int>(tint)); }
  /// A layer is shown for its strategy and for its result's placement.
  bool dims(std::optional<LayerSplit> split, Tint tint) const {
    return isOn() && !(split && has(*split)) && !has(tint);
  }
  bool operator==(const SplitFilter&) const = default;
};

/// The scale of amounts: what they are, and numbers along it.
struct HeatScale {
  QString title;             ///< empty: there is no scale, colours say how layers and values are split
  QStringList ticks;         ///< at equal distances from the least to the most; empty: nothing to show yet
  QString note;              ///< "folded boxes show the sum (Σ)"; without ticks: why there is nothing
  bool isAgreement = false;  ///< a cell of one colour for each Agreement, in place of a scale of amounts
  bool operator==(const HeatScale&) const = default;
};

struct LegendContent {
  std::array<plan::LayerTally, kLayerSplits> splits{};
  std::array<std::uint32_t, kTintCount> values{};
  std::array<QString, kTintCount> meanings;  ///< "heads", "features, vocabulary"; empty: not known
  double flops = 0;                          ///< of all operators
  HeatScale scale;
  std::size_t changed = 0;  ///< nodes outlined as changed between two plans; 0: no entry
  bool operator==(const LegendContent&) const = default;
};
/// Numbers and meanings; scale and changes are the caller's.
void setCounts(LegendContent& content, const SplitCounts* counts);

class LegendDrawing {
 public:
  struct Entry {
    QString text;                     ///< "row  14"
    QString tooltip;                  ///< empty: nothing more is known than what is written
    std::optional<LayerSplit> split;  ///< neither: a part of the scale, a caption, or the sign of changes
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
  /// As many rows as the entries need; `reserved`: kept free at the right of the first where that takes no more rows.
  int heightFor(int width, int reserved = 0) const;
  void arrange(const QSize& size, int reserved, const SplitFilter& filter);
  const std::vector<Entry>& entries() const { return m_entries; }
  QSizeF size() const { return m_size; }
  /// Right end of what stands in the first row.
  int firstRowEnd() const { return m_firstRowEnd; }
  /// `focused`: index of the entry that has the keyboard, -1: none.
  void paint(QPainter& painter, const SplitFilter& filter, int focused = -1) const;

 private:
  struct Placed {
    std::vector<Entry> entries;
    int rows = 1;
  };
  /// What dimensions mean is left to the tooltips where it would take a further row.
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
