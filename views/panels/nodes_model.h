#pragma once
/// Every operator of the graph as a row: the same data as the canvas, for keyboards and screen readers.
/// Columns: Name, Operator, Module, Shape, Placement, Strategy. Rows answer `kTargetRole` (their node).
#include <QAbstractTableModel>

#include "views/session/step_state.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

class NodesModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Name, Operator, Module, Shape, PlacementColumn, StrategyColumn, ColumnCount };
  explicit NodesModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void setGraph(std::shared_ptr<const graph::Graph> graph);
  /// Null: nothing is assigned.
  void setState(std::shared_ptr<const StepState> state);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant text(NodeId node, int column) const;
  MaybePlacement placementOf(NodeId node) const;
  std::shared_ptr<const graph::Graph> m_graph;
  std::shared_ptr<const StepState> m_state;
};

}  // namespace cleave::views
