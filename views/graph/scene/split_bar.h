#pragma once
/// The bar of a module: how much of it is split, and how. Layers count by the bytes of their weights (else by work,
/// else by number), values by placement if there is no layer. The canvas and the modules tree draw it.
#include <QPainter>

#include "views/graph/scene/split_filter.h"

namespace cleave::views {

/// `step`: distance of the pattern's lines. 0: colours only, for bars too low for patterns.
void paintSplitBar(QPainter& painter, const QRectF& bar, const SplitTally& tally, const Theme& theme, double step,
                   const SplitFilter& filter = {});

}  // namespace cleave::views
