#include "views/panels/nodes_model.h"

#include "views/base/target.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kMostAnnounced = 64;  ///< rows reported one by one; a larger change is reported as one range
}

void NodesModel::setSplits(std::shared_ptr<const SplitCounts> splits) {
  beginResetModel();
  m_splits = std::move(splits);
  endResetModel();
}

void NodesModel::reportChanges(std::span<const NodeId> nodes) {
  if (!m_splits || nodes.empty()) return;
  const auto announce = [this](NodeId first, NodeId last) {
    emit dataChanged(index(static_cast<int>(first.index()), PlacementColumn),
                     index(static_cast<int>(last.index()), StrategyColumn));
  };
  if (nodes.size() > kMostAnnounced) return announce(nodes.front(), nodes.back());
  for (const NodeId node : nodes) announce(node, node);
}

int NodesModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !m_splits ? 0 : static_cast<int>(m_splits->graph().nodes.size());
}
int NodesModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

MaybePlacement NodesModel::placementOf(NodeId node) const {
  const auto& results = m_splits->graph().node(node).results;
  return results.empty() ? std::nullopt : m_splits->placement(results[0]);
}

QVariant NodesModel::text(NodeId id, int column) const {
  const graph::Graph& graph = m_splits->graph();
  const graph::Node& node = graph.node(id);
  switch (column) {
    case Name: return nodeName(graph, id);
    case Operator: return nodeKindText(graph, id);
    case Module: return toQ(graph.scope(node.scope).path);
    case Shape:
      return node.results.empty()
                 ? QString()
                 : QStringLiteral("%1 %2").arg(shapeText(graph.shapeOf(node.results[0])),
                                               toQ(graph::toText(graph.value(node.results[0]).type.dtype)));
    case PlacementColumn: return chipText(placementOf(id));
    case StrategyColumn:
      if (const auto strategy = m_splits->strategy(id)) return toQ(rules::toText(*strategy));
      return QString();
  }
  return {};
}

QVariant NodesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !m_splits) return {};
  const NodeId node(static_cast<std::size_t>(index.row()));
  switch (role) {
    case Qt::DisplayRole: return text(node, index.column());
    case Qt::AccessibleTextRole:
      return index.column() == PlacementColumn ? QVariant(describe(placementOf(node), m_splits->ranks()))
                                               : text(node, index.column());
    case kPlacementRole: return index.column() == PlacementColumn ? QVariant::fromValue(placementOf(node)) : QVariant();
    case kRanksRole: return m_splits->ranks();
    case kSortRole:
      // Names end in a running number, so sorting them must give graph order.
      if (index.column() == Name) return index.row();
      return text(node, index.column());
    case kTargetRole: return QVariant::fromValue(Target(node));
    case Qt::ToolTipRole:
      if (index.column() == PlacementColumn) return describe(placementOf(node), m_splits->ranks());
      return index.column() == Operator ? toQ(m_splits->graph().opName(m_splits->graph().node(node)))
                                        : text(node, index.column());
    default: return {};
  }
}

QVariant NodesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  static const char* const kTitles[] = {"Name", "Operator", "Module", "Shape", "Placement", "Strategy"};
  return QString::fromUtf8(kTitles[section]);
}

}  // namespace cleave::views
