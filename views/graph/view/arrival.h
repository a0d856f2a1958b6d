#pragma once
/// The move of the view when the next scene arrives.
///
/// A change of folds asks for layouts, and its scene may come later. The arrival remembers until then what the user
/// must see: all of the drawing, a box, or the clicked box at the same place.
///
///     m_arrival = Arrival::anchor(drawn, view, module);
///     ...                                 // a new scene
///     m_arrival.moveTo(drawn, view, selectedRect);
#include <cstdint>

#include "views/graph/view/drawn_graph.h"
#include "views/graph/view/viewport.h"

namespace cleave::views {

struct Arrival {
  enum class Kind : std::uint8_t {
    Stay,
    Fit,       ///< all of the drawing
    Readable,  ///< all of it, or its top or the focus if the whole would be too small to read
    Anchor,    ///< the module's header stays where it was
    Show,      ///< the node or module is in the window
  };
  Kind kind = Kind::Stay;
  ModuleId module = {};   ///< Anchor, Show
  NodeId node = {};       ///< Show; invalid: the module
  QPointF position = {};  ///< Anchor: where the header was, window pixels

  static Arrival show(NodeId node) { return {Kind::Show, {}, node}; }
  static Arrival show(ModuleId module) { return {Kind::Show, module}; }
  /// Stay if the module is not in the scene.
  static Arrival anchor(const DrawnGraph& drawn, const Viewport& view, ModuleId module);

  /// The item to show. kNone: not in the scene.
  std::uint32_t item(const DrawnGraph& drawn) const {
    return node.isValid() ? drawn.itemOf(node) : drawn.itemOf(module);
  }
  /// Requires a scene. `focus`: see Viewport::fitReadable.
  void moveTo(const DrawnGraph& drawn, Viewport& view, const QRectF& focus) const;
};

}  // namespace cleave::views
