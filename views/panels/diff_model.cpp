#include "views/panels/diff_model.h"

#include <map>

#include "solve/problem/wording.h"
#include "views/base/target.h"
#include "views/base/text.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

namespace {
constexpr int kMembersInTip = 24;

/// Rows in the order of their first members.
class Grouping {
 public:
  void add(const QString& key, const QString& member, const DiffRow& row) {
    const auto [found, isNew] = m_rowOf.try_emplace(key, m_rows.size());
    if (isNew) m_rows.push_back(row);
    m_rows[found->second].members << member;
  }
  std::vector<DiffRow> take(std::vector<DiffRow> rows) && {
    for (DiffRow& row : m_rows) {
      if (row.members.size() == 1) row.name = row.members.front();
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  std::vector<DiffRow> m_rows;
  std::map<QString, std::size_t> m_rowOf;
};
}  // namespace

std::vector<DiffRow> diffRows(const plan::PlanDiff& diff, const graph::Graph& graph) {
  const QLatin1Char separator('\n');
  Grouping layers, values;
  for (const plan::LayerChange& change : diff.layers) {
    DiffRow row{toQ(solve::withoutIndices(change.name)),
                {},
                change.node,
                true,
                toQ(rules::toText(change.before)),
                toQ(rules::toText(change.after)),
                {},
                {},
                prose(change.reasonAfter)};
    layers.add(row.name + separator + row.before + separator + row.after, toQ(change.name), row);
  }
  for (const plan::ValueChange& change : diff.values) {
    const graph::Value& value = graph.value(change.value);
    const graph::Node& node = graph.node(value.producer);
    const QString module = toQ(solve::withoutIndices(graph.scope(node.scope).path));
    const QString kind = nodeKindText(graph, value.producer);
    DiffRow row{module.isEmpty() ? kind : QStringLiteral("%1 · %2").arg(module, kind),
                {},
                value.producer,
                false,
                toQ(change.before.text()),
                toQ(change.after.text()),
                change.before,
                change.after,
                {}};
    values.add(row.name + separator + row.before + separator + row.after, toQ(change.name), row);
  }
  return std::move(values).take(std::move(layers).take({}));
}

void DiffModel::setRows(std::vector<DiffRow> rows) {
  beginResetModel();
  m_rows = std::move(rows);
  endResetModel();
}

int DiffModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int DiffModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant DiffModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const DiffRow& row = m_rows[static_cast<std::size_t>(index.row())];
  const auto text = [&]() -> QString {
    switch (index.column()) {
      case Name: return row.name;
      case Count: return QStringLiteral("×%1").arg(countText(static_cast<std::uint64_t>(row.members.size())));
      case Before: return row.before;
      case After: return row.after;
      case Why: return row.why;
    }
    return {};
  };
  switch (role) {
    case Qt::DisplayRole: return text();
    case Qt::ToolTipRole: {
      if (index.column() == Why) return row.why;
      QStringList members = row.members.mid(0, kMembersInTip);
      if (row.members.size() > kMembersInTip)
        members << QStringLiteral("… and %1 more").arg(row.members.size() - kMembersInTip);
      return members.join(QLatin1Char('\n'));
    }
    case kTargetRole: return QVariant::fromValue(Target(row.node));
    case kPlacementRole:
      if (row.isLayer || (index.column() != Before && index.column() != After)) return {};
      return QVariant::fromValue(MaybePlacement(index.column() == Before ? row.beforeLies : row.afterLies));
    case kSortRole:
      if (index.column() == Name) return index.row();
      if (index.column() == Count) return row.members.size();
      return text();
    case Qt::TextAlignmentRole:
      return index.column() == Count ? int(Qt::AlignRight | Qt::AlignVCenter) : int(Qt::AlignLeft | Qt::AlignVCenter);
    default: return {};
  }
}

QVariant DiffModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  static const char* const kTitles[] = {"Changed", "Count", "In A", "In B", "Reason in B"};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kTitles[section]);
  if (role == Qt::TextAlignmentRole && section == Count) return int(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace cleave::views
