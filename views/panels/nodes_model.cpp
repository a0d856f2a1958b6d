#include "views/panels/nodes_model.h"

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kMostAnnounced = 64;  ///< rows told one by one; more are a jump, and told as one range
}

void NodesModel::setGraph(std::shared_ptr<const graph::Graph> graph) {
  beginResetModel();
  m_graph = std::move(graph);
  m_state.reset();
  endResetModel();
}

void NodesModel::setState(std::shared_ptr<const StepState> state) {
  if (!m_graph) return void(m_state = std::move(state));
  static const StepState kNothing;
  const std::vector<NodeId> changed = changedNodes(*m_graph, m_state.get(), state ? *state : kNothing);
  m_state = std::move(state);
  const auto announce = [this](NodeId first, NodeId last) {
    emit dataChanged(index(static_cast<int>(first.index()), PlacementColumn),
                     index(static_cast<int>(last.index()), StrategyColumn));
  };
  if (changed.size() > kMostAnnounced) return announce(changed.front(), changed.back());
  for (const NodeId node : changed) announce(node, node);
}

int NodesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !m_graph ? 0 : static_cast<int>(m_graph->nodes.size());
}
int NodesModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

MaybePlacement NodesModel::placementOf(NodeId node) const {
  const auto& results = m_graph->node(node).results;
  if (!m_state || results.empty() || results[0].index() >= m_state->placements.size()) return std::nullopt;
  return m_state->placements[results[0].index()];
}

QVariant NodesModel::text(NodeId id, int column) const {
  const graph::Node& node = m_graph->node(id);
  switch (column) {
    case Name: return nodeName(*m_graph, id);
    case Operator: return nodeKindText(*m_graph, id);
    case Module: return toQ(m_graph->scope(node.scope).path);
    case Shape:
      return node.results.empty()
                 ? QString()
                 : QStringLiteral("%1 %2").arg(shapeText(m_graph->shapeOf(node.results[0])),
                                               toQ(graph::toText(m_graph->value(node.results[0]).type.dtype)));
    case PlacementColumn: return chipText(placementOf(id));
    case StrategyColumn:
      if (m_state && id.index() < m_state->strategies.size() && m_state->strategies[id.index()])
        return toQ(rules::toText(*m_state->strategies[id.index()]));
      return QString();
  }
  return {};
}

QVariant NodesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !m_graph) return {};
  const NodeId node(static_cast<std::size_t>(index.row()));
  switch (role) {
    case Qt::DisplayRole: return text(node, index.column());
    case Qt::AccessibleTextRole:
      return index.column() == PlacementColumn ? QVariant(describe(placementOf(node), m_state ? m_state->ranks : 0))
                                               : text(node, index.column());
    case kPlacementRole: return index.column() == PlacementColumn ? QVariant::fromValue(placementOf(node)) : QVariant();
    case kRanksRole: return m_state ? m_state->ranks : 0;
    case kSortRole:
      // Names end in a running number: graph order is what their order means.
      if (index.column() == Name) return index.row();
      return text(node, index.column());
    case kTargetRole: return QVariant::fromValue(Target(node));
    case Qt::ToolTipRole:
      if (index.column() == PlacementColumn) return describe(placementOf(node), m_state ? m_state->ranks : 0);
      return index.column() == Operator ? toQ(m_graph->opName(m_graph->node(node))) : text(node, index.column());
    default: return {};
  }
}

QVariant NodesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  static const char* const kTitles[] = {QT_TR_NOOP("Name"),  QT_TR_NOOP("Operator"),  QT_TR_NOOP("Module"),
                                        QT_TR_NOOP("Shape"), QT_TR_NOOP("Placement"), QT_TR_NOOP("Strategy")};
  return tr(kTitles[section]);
}

}  // namespace cleave::views
