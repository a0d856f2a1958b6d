#pragma once
/// The changes from plan A to plan B as a table: layers first, then values. Equal changes of repeated layers are one
/// row. Columns: Name, Count, Before, After, Reason in B. Rows answer `kTargetRole` (their node), and placements of
/// values answer `kPlacementRole`.
#include <QAbstractTableModel>
#include <memory>

#include "plan/build/diff.h"

namespace cleave::views {

/// Equal changes of one or more layers (or values).
struct DiffRow {
  QString name;  ///< one member: its name; several: "model.layers.*.mlp.up_proj"
  QStringList members;
  graph::NodeId node;  ///< the first one
  bool isLayer = true;
  QString before, after;                   ///< strategies, or placements
  rules::Placement beforeLies, afterLies;  ///< values only
  QString why;
};
/// `graph`: the graph of plan B, which gives values their modules.
std::vector<DiffRow> diffRows(const plan::PlanDiff& diff, const graph::Graph& graph);

class DiffModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Name, Count, Before, After, Why, ColumnCount };
  explicit DiffModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void setRows(std::vector<DiffRow> rows);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<DiffRow> m_rows;
};

}  // namespace cleave::views
