#pragma once
/// The boxes to repaint after a few nodes changed, without a new layout.
#include <QRect>
#include <QRegion>
#include <optional>
#include <span>
#include <vector>

#include "views/graph/view/drawn_graph.h"
#include "views/graph/view/viewport.h"

namespace cleave::views {

/// The items that show the placements of these nodes, as SplitCounts::update answered them. nullopt: any item may.
/// Requires a scene.
std::optional<std::vector<std::uint32_t>> itemsShowing(const DrawnGraph& drawn, std::span<const NodeId> changed);

/// The boxes, and the headers and blocks of all frames around them, in pixels of the view and inside `reach`.
QRegion regionOf(const DrawnGraph& drawn, std::span<const std::uint32_t> items, const Viewport& view,
                 const QRect& reach);

}  // namespace cleave::views
