#include "views/panels/modules_model.h"

#include <vector>

#include "views/base/target.h"
#include "views/base/text.h"
#include "views/graph/model/module_path.h"

namespace cleave::views {

void ModulesModel::setSplits(std::shared_ptr<const SplitCounts> splits) {
  beginResetModel();
  m_splits = std::move(splits);
  endResetModel();
}

void ModulesModel::reportChanges(std::span<const NodeId> nodes) {
  if (!m_splits) return;
  const ModuleTree& tree = m_splits->tree();
  std::vector<bool> isTold(tree.size(), false);
  for (const NodeId node : nodes) {
    TreeItemId item = tree.itemOf(m_splits->graph().node(node).scope);
    for (; item.isValid() && !isTold[item.index()]; item = tree.item(item).parent) {
      isTold[item.index()] = true;
      const QModelIndex split = indexOf(item, Split);
      emit dataChanged(split, split, {kSplitTallyRole});
    }
  }
}

const TreeItem& ModulesModel::itemAt(const QModelIndex& index) const {
  return m_splits->tree().item(TreeItemId(static_cast<std::size_t>(index.internalId())));
}

QModelIndex ModulesModel::indexOf(TreeItemId item, int column) const {
  return createIndex(static_cast<int>(m_splits->tree().item(item).row), column, quintptr(item.index()));
}

QModelIndex ModulesModel::indexOf(ScopeId scope) const {
  if (!m_splits || !scope.isValid()) return {};
  return indexOf(m_splits->tree().itemOf(scope), 0);
}

QModelIndex ModulesModel::index(int row, int column, const QModelIndex& parent) const {
  if (row < 0 || column < 0 || column >= ColumnCount || row >= rowCount(parent)) return {};
  const TreeItemId item =
      parent.isValid() ? itemAt(parent).children[static_cast<std::size_t>(row)] : m_splits->tree().root();
  return indexOf(item, column);
}

QModelIndex ModulesModel::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  const TreeItemId parent = itemAt(child).parent;
  return parent.isValid() ? indexOf(parent, 0) : QModelIndex();
}

int ModulesModel::rowCount(const QModelIndex& parent) const {
  if (parent.column() > 0 || !m_splits) return 0;
  return parent.isValid() ? static_cast<int>(itemAt(parent).children.size()) : 1;
}

int ModulesModel::columnCount(const QModelIndex&) const { return ColumnCount; }

QString ModulesModel::nameOf(const TreeItem& item) const {
  const ModuleTree& tree = m_splits->tree();
  const auto nameOf = [&](ScopeId scope) {
    const std::string_view name = lastPart(tree.graph().scope(scope).path);
    return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
  };
  if (!item.parent.isValid()) {
    const std::string& className = tree.graph().scope(item.scope).className;
    return className.empty() ? QStringLiteral("model") : toQ(className);
  }
  if (item.stackSize == 0) return nameOf(item.scope);
  const ScopeId last = tree.item(item.children.back()).scope;
  return QStringLiteral("%1 – %2  ×%3").arg(nameOf(item.scope), nameOf(last)).arg(item.stackSize);
}

QVariant ModulesModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const TreeItem& item = itemAt(index);
  const graph::Scope& scope = m_splits->graph().scope(item.scope);
  const SplitTally& tally = m_splits->of(TreeItemId(static_cast<std::size_t>(index.internalId())));
  if (role == kTargetRole) return QVariant::fromValue(Target(item.scope));
  switch (index.column()) {
    case Name:
      if (role == Qt::DisplayRole) return nameOf(item);
      if (role == Qt::ToolTipRole) {
        if (item.stackSize) return QStringLiteral("%1 of equal structure").arg(countedText(item.stackSize, "module"));
        return scope.className.empty() ? toQ(scope.path)
                                       : QStringLiteral("%1\n%2").arg(toQ(scope.path), toQ(scope.className));
      }
      break;
    case Split:
      if (role == kSplitTallyRole) return QVariant::fromValue(tally);
      if (role == Qt::ToolTipRole || role == Qt::AccessibleTextRole) return splitLines(tally).join(QLatin1Char('\n'));
      break;
    case Operators:
      if (role == Qt::DisplayRole) return static_cast<int>(item.operators);
      if (role == Qt::TextAlignmentRole) return int(Qt::AlignRight | Qt::AlignVCenter);
      break;
  }
  return {};
}

QVariant ModulesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  static const char* const kTitles[] = {"Module", "Split", "Ops"};
  if (role == Qt::DisplayRole) return QString::fromUtf8(kTitles[section]);
  if (role == Qt::TextAlignmentRole && section == Operators) return int(Qt::AlignRight | Qt::AlignVCenter);
  return {};
}

}  // namespace cleave::views
