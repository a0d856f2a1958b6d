#include "views/graph/view/arrival.h"

namespace cleave::views {

Arrival Arrival::anchor(const DrawnGraph& drawn, const Viewport& view, ModuleId module) {
  const std::uint32_t item = drawn.itemOf(module);
  if (item == SceneItem::kNone) return {};
  return {Kind::Anchor, module, {}, view.toView(drawn.scene()->items()[item].rect.topLeft())};
}

void Arrival::moveTo(const DrawnGraph& drawn, Viewport& view, const QRectF& focus) const {
  const std::uint32_t index = item(drawn);
  const QRectF box = index == SceneItem::kNone ? QRectF() : drawn.scene()->items()[index].rect;
  switch (kind) {
    case Kind::Stay: break;
    case Kind::Fit: view.fit(); break;
    case Kind::Readable: view.fitReadable(focus); break;
    case Kind::Anchor:
      view.stopFitting();
      if (box.isNull()) break;
      view.shift(position - view.toView(box.topLeft()));
      if (!view.shows(box)) view.fit();
      break;
    case Kind::Show:
      if (!box.isNull()) view.show(box);
      view.stopFitting();
      break;
  }
  view.keepInReach();
}

}  // namespace cleave::views
