#pragma once
/// The strips around the drawing: the legend above and the overview at the right. They belong to the view, so nothing
/// floats over the drawing.
#include <QMargins>
#include <QSize>
#include <QWidget>

#include "views/graph/view/legend.h"
#include "views/graph/view/minimap.h"

namespace cleave::views {

class Strips {
 public:
  /// `parent` owns the widgets. `paint`: see Minimap.
  Strips(QWidget* parent, Minimap::PaintScene paint);
  Legend& legend() const { return *m_legend; }
  Minimap& minimap() const { return *m_minimap; }
  void setTheme(const Theme& theme);
  void setCounts(const SplitCounts* splits, std::size_t changed);  ///< the legend's numbers; null: no graph
  void setScale(const HeatScale& scale);                           ///< the legend's scale of amounts

  /// Pixels that the legend lacks in height at this width. Negative: it is too high.
  int missingHeight(int width) const { return m_legend->heightForWidth(width) - m_legendHeight; }
  void grow(int by) { m_legendHeight += by; }

  // For a view of this size: room for the strips, then their places.
  int leastHeight() const;  ///< of a view
  QMargins margins(int width) const;
  void place(const QSize& size) const;

 private:
  Legend* m_legend;
  Minimap* m_minimap;
  int m_legendHeight = 0;
};

}  // namespace cleave::views
