#pragma once
/// Every operator of the graph as a row: the canvas's data for keyboards and screen readers.
/// Columns: Name, Operator, Module, Shape, Placement, Strategy. Rows answer `kTargetRole` (their node).
#include <QAbstractTableModel>
#include <span>

#include "views/graph/model/split_counts.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

class NodesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Name, Operator, Module, Shape, PlacementColumn, StrategyColumn, ColumnCount };
  explicit NodesModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  /// Null: no model.
  void setSplits(std::shared_ptr<const SplitCounts> splits);
  void reportChanges(std::span<const NodeId> nodes);  ///< the nodes whose counts changed, ascending

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant text(NodeId node, int column) const;
  MaybePlacement placementOf(NodeId node) const;
  std::shared_ptr<const SplitCounts> m_splits;
};

}  // namespace cleave::views
