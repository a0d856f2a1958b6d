#include "views/graph/view/stale_boxes.h"

#include <algorithm>

namespace cleave::views {

std::optional<std::vector<std::uint32_t>> itemsShowing(const DrawnGraph& drawn, std::span<const NodeId> changed) {
  const GraphModel& model = *drawn.model();
  const graph::Graph& graph = *drawn.graph();
  std::vector<std::uint32_t> items;
  const auto add = [&](std::uint32_t item) {
    if (item != SceneItem::kNone) items.push_back(item);
  };
  std::vector<bool> isChanged(graph.nodes.size(), false);
  for (const NodeId id : changed) {
    isChanged[id.index()] = true;
    const graph::Node& node = graph.node(id);
    if (std::any_of(node.results.begin(), node.results.end(), [&](ValueId v) { return model.isHub(v); }))
      return std::nullopt;  // its chips may be anywhere
    add(drawn.itemOf(id));
    // Skipped helpers are drawn with their inputs, and count at the boxes that show them.
    if (node.scope.index() < graph.scopes.size()) add(drawn.itemOf(model.moduleOf(node.scope)));
    const bool isDocked = node.kind == graph::NodeKind::Parameter || node.kind == graph::NodeKind::Constant;
    // A layer shows its input placements, and a parameter's readers show the parameter.
    for (const ValueId result : node.results)
      for (const NodeId reader : model.readers(model.source(result)))
        if (isDocked || drawn.splits()->isLayer(reader)) add(drawn.itemOf(reader));
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    if (isChanged[graph.value(graph.outputs[i].value).producer.index()])
      add(drawn.scene()->outputItem(static_cast<int>(i)));
  return items;
}

QRegion regionOf(const DrawnGraph& drawn, std::span<const std::uint32_t> items, const Viewport& view,
                 const QRect& reach) {
  constexpr double kTallFrame = 160;  // pixels; a taller frame shows its content, so only its header changes
  constexpr int kMostRects = 200;
  QRegion region;
  for (std::uint32_t i : items) {
    while (i != SceneItem::kNone) {
      const SceneItem& item = drawn.scene()->items()[i];
      QRectF rect = view.toView(item.rect);
      if (item.kind == ItemKind::Frame && rect.height() > kTallFrame)
        rect.setHeight(drawn.metrics().header * view.zoom() + 2);
      // A box's ring and the collectives on its outgoing line are outside the box.
      const QRect dirty = rect.adjusted(-12, -12, 12, 28 * view.zoom() + 2).toAlignedRect().intersected(reach);
      if (!dirty.isEmpty()) region += dirty;
      i = item.parent;
    }
    if (region.rectCount() > kMostRects) region = region.boundingRect();
  }
  return region;
}

}  // namespace cleave::views
