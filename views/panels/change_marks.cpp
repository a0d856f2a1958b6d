#include "views/panels/change_marks.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

namespace {
constexpr int kIconSize = 12;

/// The canvas marks changed boxes with the same delta.
QIcon deltaIcon() {
  QPixmap pixmap(kIconSize, kIconSize);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(Theme::of(QApplication::palette()).changed);
  painter.drawPolygon(QPolygonF{{6, 1}, {11.5, 11}, {0.5, 11}});
  return pixmap;
}
}  // namespace

std::vector<NodeId> changedNodes(const plan::PlanDiff& diff, const graph::Graph& graph) {
  std::vector<NodeId> nodes;
  for (const plan::LayerChange& layer : diff.layers)
    if (layer.node.index() < graph.nodes.size()) nodes.push_back(layer.node);
  for (const plan::ValueChange& value : diff.values)
    if (value.value.index() < graph.values.size()) nodes.push_back(graph.value(value.value).producer);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

ChangeMarks::ChangeMarks(const OpenedModel& opened, const Plans& plans, QAbstractItemModel* source, QObject* parent)
    : QIdentityProxyModel(parent), m_opened(opened), m_plans(plans) {
  setSourceModel(source);
  connect(&plans, &Plans::branchesChanged, this, &ChangeMarks::refresh);
}

void ChangeMarks::refresh() {
  QSet<Target> targets;
  const graph::Graph* graph = m_opened.graph();
  if (m_plans.diff() && graph) {
    for (const NodeId node : changedNodes(*m_plans.diff(), *graph)) {
      targets.insert(node);
      for (ScopeId scope = graph->node(node).scope; scope.isValid(); scope = graph->scope(scope).parent)
        targets.insert(scope);
    }
  }
  if (targets == m_targets) return;
  m_targets = std::move(targets);
  m_icon = m_targets.isEmpty() ? QIcon() : deltaIcon();
  announce({});
}

void ChangeMarks::announce(const QModelIndex& parent) {
  const int rows = rowCount(parent);
  if (rows == 0) return;
  emit dataChanged(index(0, 0, parent), index(rows - 1, 0, parent), {Qt::DecorationRole, Qt::ToolTipRole});
  for (int row = 0; row < rows; ++row) {
    const QModelIndex child = index(row, 0, parent);
    if (hasChildren(child)) announce(child);
  }
}

QVariant ChangeMarks::data(const QModelIndex& index, int role) const {
  const bool isMark = (role == Qt::DecorationRole || role == Qt::ToolTipRole) && index.column() == 0;
  const auto target = isMark && !m_targets.isEmpty() ? targetOf(index) : std::nullopt;
  if (!target || !m_targets.contains(*target)) return QIdentityProxyModel::data(index, role);
  if (role == Qt::DecorationRole) return m_icon;
  const QString before = QIdentityProxyModel::data(index, role).toString();
  return before.isEmpty() ? QStringLiteral("Changed from A to B")
                          : before + QLatin1Char('\n') + QStringLiteral("Changed from A to B");
}

}  // namespace cleave::views
