#pragma once
/// The module tree for a tree view, each item with the same bar as on the canvas. A stack of equal neighbours
/// ("layers.0" to "layers.31") is one row "0 – 31  ×32" above them.
///
/// Columns: Module, Split, Operators. Rows answer `kTargetRole` (their module).
#include <QAbstractItemModel>
#include <span>

#include "views/graph/model/split_counts.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

class ModulesModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { Name, Split, Operators, ColumnCount };
  explicit ModulesModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}

  /// Null: no model.
  void setSplits(std::shared_ptr<const SplitCounts> splits);
  void reportChanges(std::span<const NodeId> nodes);  ///< the nodes whose counts changed
  QModelIndex indexOf(ScopeId scope) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const TreeItem& itemAt(const QModelIndex& index) const;
  QModelIndex indexOf(TreeItemId item, int column) const;
  QString nameOf(const TreeItem& item) const;
  std::shared_ptr<const SplitCounts> m_splits;
};

}  // namespace cleave::views
