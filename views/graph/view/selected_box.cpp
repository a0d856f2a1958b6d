#include "views/graph/view/selected_box.h"

namespace cleave::views {

SelectedBox boxOf(const DrawnGraph& drawn, ValueId value) {
  if (!drawn.model() || !value.isValid() || value.index() >= drawn.graph()->values.size()) return {};
  return {drawn.model()->shownNode(drawn.graph()->value(value).producer), {}, -1};
}

SelectedBox boxOf(const DrawnGraph& drawn, NodeId node) {
  if (!drawn.model() || !node.isValid() || node.index() >= drawn.graph()->nodes.size()) return {};
  return {drawn.model()->shownNode(node), {}, -1};
}

SelectedBox boxOf(const DrawnGraph& drawn, ScopeId scope) {
  if (!drawn.has(scope)) return {};
  if (const auto node = drawn.model()->inlinedNode(scope)) return {*node, {}, -1};
  const ModuleId module = drawn.model()->moduleOf(scope);
  return {{}, module == drawn.model()->root() ? ModuleId() : module, -1};
}

std::uint32_t itemOf(const DrawnGraph& drawn, const SelectedBox& box) {
  if (box.node.isValid()) return drawn.itemOf(box.node);
  if (box.output >= 0) return drawn.scene() ? drawn.scene()->outputItem(box.output) : SceneItem::kNone;
  return drawn.itemOf(box.module);
}

QStringList breadcrumb(const DrawnGraph& drawn, const SelectedBox& box) {
  const graph::Graph* graph = drawn.graph();
  QStringList path{graph ? QString::fromStdString(graph->name.empty() ? "model" : graph->name) : QString()};
  const GraphModel* model = drawn.model();
  if (!model) return path;
  const ModuleId module = box.node.isValid() ? model->moduleOf(box.node) : box.module;
  if (module.isValid())
    for (const ModuleId id : model->pathTo(module)) path << QString::fromStdString(model->module(id).title);
  if (!box.node.isValid()) return path;
  const std::string& tail = model->trimmings(box.node).tail;
  return path << (tail.empty() ? drawn.labels().node(box.node).title : QString::fromStdString(tail));
}

}  // namespace cleave::views
