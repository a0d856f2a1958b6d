#include "views/graph/view/next_box.h"

#include <cmath>

namespace cleave::views {
namespace {

std::uint32_t nearest(const std::vector<SceneItem>& items, std::uint32_t from, const Neighbourhood& next) {
  const auto distance = [&](std::uint32_t i) {
    const QPointF by = items[i].rect.center() - items[from].rect.center();
    return std::abs(by.x()) + std::abs(by.y());
  };
  std::uint32_t to = SceneItem::kNone;
  for (const std::uint32_t i : next.items)
    if (to == SceneItem::kNone || distance(i) < distance(to)) to = i;
  return to;
}

std::uint32_t beside(const std::vector<SceneItem>& items, std::uint32_t from, bool isRight) {
  const QRectF& here = items[from].rect;
  const auto distance = [&](std::uint32_t i) { return std::abs(items[i].rect.center().x() - here.center().x()); };
  std::uint32_t to = SceneItem::kNone;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    const QRectF& there = items[i].rect;
    const bool isInRow = there.bottom() >= here.top() && there.top() <= here.bottom();
    if (i == from || items[i].parent != items[from].parent || !isInRow) continue;
    const bool isAside = isRight ? there.left() >= here.right() : there.right() <= here.left();
    if (isAside && (to == SceneItem::kNone || distance(i) < distance(to))) to = i;
  }
  return to;
}

}  // namespace

std::uint32_t nextBox(const Scene& scene, const SceneLinks& links, std::uint32_t from, Qt::Key arrow) {
  const auto& items = scene.items();
  if (from == SceneItem::kNone) return items.empty() ? SceneItem::kNone : 0;
  switch (arrow) {
    case Qt::Key_Down: return nearest(items, from, links.readersOf(from));
    case Qt::Key_Up: return nearest(items, from, links.sourcesOf(from));
    default: return beside(items, from, arrow == Qt::Key_Right);
  }
}

}  // namespace cleave::views
