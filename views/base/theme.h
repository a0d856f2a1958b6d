#pragma once
/// Colours and patterns of the window, light and dark. The canvas and all panels use them.
///
/// A placement's colour shows the dimension it splits (Okabe-Ito, safe for colour-blind readers). A layer's colour
/// shows its strategy and is darker, so that white text is readable. Hue is never the only sign: placements also have a
/// chip text ("S1") and a fill pattern, strategies a word ("row") and a pattern.
///
///     const Theme theme = Theme::of(widget->palette());
///     painter.fillRect(r, theme.placementColor(placement));   // placement: std::optional<rules::Placement>
///     painter.setPen(theme.textOn(theme.placementColor(placement)));
#include <QBrush>
#include <QColor>
#include <QPalette>
#include <QString>
#include <optional>

#include "plan/text/work.h"
#include "rules/placement.h"

namespace cleave::views {

/// The classes of placements with a colour of their own. Values index tables: keep them dense.
enum class Tint : std::uint8_t { Dim0, Dim1, Dim2, Dim3, Dim4Plus, Expert, Replicated, Unassigned };
inline constexpr int kTintCount = 8;

using MaybePlacement = std::optional<rules::Placement>;  ///< nullopt: not assigned (yet)
using plan::kLayerSplits;
using plan::LayerSplit;

/// `ranks`: the number of copies at which a placement counts as replicated. 0: unknown.
Tint tintOf(const MaybePlacement& placement, int ranks = 0);
/// The chip on a node: "S1", "S1-2", "R", "S2b3", "S1x2", or "?" without a placement.
QString chipText(const MaybePlacement& placement);
/// "split on dimension 1", "replicated on all ranks", "not assigned yet": for the chip's tooltip and the legend.
QString describe(Tint tint);
QString describe(const MaybePlacement& placement, int ranks = 0);
QString strategyText(LayerSplit split);  ///< "column": the word on a layer's head and in the legend
/// "column", or "column, copied" if every rank has a full copy of the result.
QString strategyText(rules::Strategy strategy, LayerSplit split);
QString describe(LayerSplit split);  ///< "column: each rank computes a shard of the output features"

struct Theme {
  bool dark = false;
  QColor ground, groundRaised, groundSunken;  ///< canvas; panels and boxes on it; stripes
  QColor text, textQuiet;                     ///< both at least 4.5:1 on every ground
  QColor border, borderStrong, edge;
  QColor accent, onAccent;  ///< selection
  QColor inputs, outputs;   ///< producers and readers of the selection
  QColor conflict, warning, good;
  QColor searchHit;
  QColor changed;  ///< outline of boxes that changed in a diff
  QColor tints[kTintCount];
  QColor splits[kLayerSplits];

  static Theme light();
  static Theme darkTheme();
  /// Dark when the palette's window is darker than its text.
  static Theme of(const QPalette& palette);
  QPalette palette() const;  ///< for QApplication::setPalette

  const QColor& color(Tint tint) const { return tints[static_cast<int>(tint)]; }
  const QColor& color(LayerSplit split) const { return splits[static_cast<int>(split)]; }
  const QColor& placementColor(const MaybePlacement& placement, int ranks = 0) const {
    return color(tintOf(placement, ranks));
  }
  /// Black-ish or white, whichever reads better on `background`.
  QColor textOn(const QColor& background) const;
  /// A colour for an amount from 0 (zero: the ground) to 1. The scale is ordered by lightness alone, so that it also
  /// works in grey.
  QColor heat(double fraction) const;
  /// The pattern of a tint as a brush to lay over its colour; Qt::NoBrush for plain ones.
  QBrush pattern(Tint tint) const;
  QBrush pattern(LayerSplit split) const;

 private:
  QBrush patternOn(const QColor& color, Qt::BrushStyle style, int alpha) const;
};

/// WCAG 2 contrast ratio, 1..21.
double contrast(const QColor& a, const QColor& b);
/// `over` drawn on `under` with `opacity` 0..1, as an opaque colour.
QColor blend(const QColor& under, const QColor& over, double opacity);

}  // namespace cleave::views
