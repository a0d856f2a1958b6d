#pragma once
/// The bar of a module: how much of it is split, and how. Layers by the bytes of their weights (else by work, else by
/// number); values by placement where there is no layer. The canvas and the modules tree draw it.
#include <QPainter>

#include "views/graph/scene/legend_drawing.h"

namespace cleave::views {

/// `step`: distance of the lines of patterns; 0: colours alone, for bars too low to show them.
void paintSplitBar(QPainter& painter, const QRectF& bar, const SplitTally& tally, const Theme& theme, double step,
                   const SplitFilter& filter = {});

}  // namespace cleave::views
