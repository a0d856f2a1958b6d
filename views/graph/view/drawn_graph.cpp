#include "views/graph/view/drawn_graph.h"

#include <QFontInfo>
#include <QStringList>
#include <algorithm>
#include <utility>
#include <vector>

namespace cleave::views {

void DrawnGraph::setSplits(std::shared_ptr<const SplitCounts> splits) { m_splits = std::move(splits); }

/// Everything drawn scales with the user's font size. The default size is 100 %.
void DrawnGraph::setFont(const QFont& font) {
  constexpr double kUsualPixels = 12;
  m_labels.reset();  // they refer to the metrics
  m_metrics = std::make_unique<Metrics>(QFontInfo(font).pixelSize() / kUsualPixels, font);
}

void DrawnGraph::setHelpersFolded(bool folded) { m_options.foldNoise = folded; }

void DrawnGraph::make() {
  m_links.reset();
  m_scene.reset();
  m_labels.reset();
  m_model.reset();
  if (!m_splits) return;
  m_model = std::make_unique<GraphModel>(makeGraphModel(m_splits->sharedTree(), m_options));
  m_labels = std::make_unique<Labels>(*m_model, *m_metrics);
}

bool DrawnGraph::makeScene(const FoldState& folds, const LayoutSource& layouts) {
  if (!m_model) return false;
  auto scene = views::makeScene(*m_model, folds, *m_labels, layouts);
  if (!scene) return false;
  m_links.reset();  // they refer to the scene
  m_scene = std::move(scene);
  return true;
}

const SceneLinks& DrawnGraph::links() const {
  if (!m_links) m_links = std::make_unique<SceneLinks>(*m_scene);
  return *m_links;
}

bool DrawnGraph::has(ScopeId scope) const {
  return m_model && scope.isValid() && scope.index() < graph()->scopes.size();
}

NodeId DrawnGraph::standIn(NodeId node) const {
  if (!m_model || node.index() >= graph()->nodes.size()) return {};
  if (const NodeId shown = m_model->shownNode(node); shown.isValid()) return shown;
  for (const ValueId result : graph()->node(node).results)
    for (const NodeId reader : m_model->readers(m_model->source(result)))
      if (const NodeId shown = m_model->shownNode(reader); shown.isValid()) return shown;
  return {};
}

ScopeId DrawnGraph::scopeOf(ModuleId module) const {
  while (module.isValid() && !m_model->module(module).scope.isValid()) module = m_model->module(module).parent;
  return module.isValid() ? m_model->module(module).scope : ScopeId();
}

QString DrawnGraph::text() const {
  if (!m_scene) return {};
  std::vector<std::pair<double, QString>> lines;
  for (const SceneItem& item : m_scene->items()) {
    const QString indent(item.depth * 2, QLatin1Char(' '));
    QString text;
    if (item.node.isValid()) {
      const NodeLabel& label = m_labels->node(item.node);
      text = label.tail.isEmpty() ? label.title : label.title + QStringLiteral(" (") + label.tail + QLatin1Char(')');
    } else if (item.output >= 0) {
      text = QStringLiteral("→ ") + m_labels->outputTitle(item.output);
    } else {
      text = (item.kind == ItemKind::Frame ? QStringLiteral("▾ ") : QStringLiteral("▸ ")) +
             m_labels->module(item.module, item.lastModule).title;
    }
    lines.emplace_back(item.rect.top(), indent + text);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  QStringList all;
  for (const auto& [y, text] : lines) all << text;
  return all.join(QLatin1Char('\n'));
}

}  // namespace cleave::views
