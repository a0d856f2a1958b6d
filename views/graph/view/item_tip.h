#pragma once
/// The tooltip of a box on the canvas: its value, how it is split, its amount.
#include <QPointF>
#include <QString>

#include "views/graph/view/colors.h"
#include "views/graph/view/drawn_graph.h"

namespace cleave::views {

/// Rich text for the item at a point (world). Empty: no tooltip there. Requires a scene and its colours.
QString itemTip(const DrawnGraph& drawn, const Colors& colors, std::uint32_t item, const QPointF& world);

}  // namespace cleave::views
