// Scrolls to the user's focus: unfolds modules for it and moves as little as possible.
#include <algorithm>

#include "views/graph/view/graph_view.h"

namespace cleave::views {

namespace {
constexpr double kReadableHeight = 10;  ///< pixels; a lower box is not readable
constexpr double kReadableZoom = 0.8;
}  // namespace

/// Keeps a zoom that the user chose. An automatic fit changes if the item would not be readable.
void GraphView::showItem(std::uint32_t item) {
  if (item == SceneItem::kNone) return;
  const QRectF rect = m_scene->items()[item].rect;
  if (m_isFitted && rect.height() * m_zoom < kReadableHeight) zoomTo(kReadableZoom);
  scrollIntoView(rect);
}

/// The node drawn for this one: itself, the one whose value it passes on, or its first reader.
NodeId GraphView::standIn(NodeId node) const {
  if (!m_model || node.index() >= graph()->nodes.size()) return {};
  if (const NodeId shown = m_model->shownNode(node); shown.isValid()) return shown;
  for (const ValueId result : graph()->node(node).results)
    for (const NodeId reader : m_model->readers(m_model->source(result)))
      if (const NodeId shown = m_model->shownNode(reader); shown.isValid()) return shown;
  return {};
}

void GraphView::showNode(NodeId node, FoldState folds) {
  const ModuleId module = m_model->moduleOf(node);
  openAncestors(module, folds);
  if (module != m_model->root()) folds.open.insert(module);
  if (m_scene && !m_isBuilding && folds == m_folds) return showItem(m_scene->itemOf(*m_model, node));
  setFolds(std::move(folds), {Arrival::Kind::Show, {}, node, {}});
}

void GraphView::reveal(NodeId node) {
  const NodeId shown = standIn(node);
  if (!shown.isValid()) return;
  m_followed.clear();
  showNode(shown, m_folds);
}

void GraphView::follow(NodeId node) {
  const NodeId shown = standIn(node);
  if (!shown.isValid()) return;
  const std::vector<ModuleId> path = m_model->pathTo(m_model->moduleOf(shown));
  const auto isAround = [&](ModuleId id) { return std::find(path.begin(), path.end(), id) != path.end(); };
  FoldState folds = m_folds;
  for (const ModuleId id : m_followed)
    if (!isAround(id)) folds.open.erase(id), folds.loose.erase(id);
  std::vector<ModuleId> followed;
  for (const ModuleId id : path) {
    const bool isMine = std::find(m_followed.begin(), m_followed.end(), id) != m_followed.end();
    if (isMine || !folds.isOpen(id)) followed.push_back(id);
  }
  showNode(shown, std::move(folds));
  m_followed = std::move(followed);
}

void GraphView::reveal(ScopeId scope) {
  if (!m_model || scope.index() >= graph()->scopes.size()) return;
  if (const auto node = m_model->inlinedNode(scope)) return reveal(*node);
  const ModuleId module = m_model->moduleOf(scope);
  FoldState folds = m_folds;
  openAncestors(module, folds);
  m_followed.clear();
  if (m_scene && !m_isBuilding && folds == m_folds) return showItem(m_scene->itemOf(*m_model, module));
  setFolds(std::move(folds), {Arrival::Kind::Show, module, {}, {}});
}

}  // namespace cleave::views
