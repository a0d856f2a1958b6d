#pragma once
/// The box that the user chose on the canvas: an operator or input, a module, or an output of the graph.
#include <QStringList>

#include "views/graph/view/drawn_graph.h"

namespace cleave::views {

/// At most one is set.
struct SelectedBox {
  NodeId node;
  ModuleId module;
  int output = -1;  ///< index into Graph::outputs; -1: not an output
  static SelectedBox of(const SceneItem& item) { return {item.node, item.module, item.output}; }
  bool operator==(const SelectedBox&) const = default;
};

// The box drawn for a value, node or scope of the graph. Invalid ids and an empty canvas: nothing selected.
SelectedBox boxOf(const DrawnGraph& drawn, ValueId value);
SelectedBox boxOf(const DrawnGraph& drawn, NodeId node);
SelectedBox boxOf(const DrawnGraph& drawn, ScopeId scope);

/// kNone: not in the scene.
std::uint32_t itemOf(const DrawnGraph& drawn, const SelectedBox& box);
/// The graph's name, and the modules around the box, outermost first.
QStringList breadcrumb(const DrawnGraph& drawn, const SelectedBox& box);

}  // namespace cleave::views
