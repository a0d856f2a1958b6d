#pragma once
/// The plan's layers: each layer's strategy and the shard of its weight per rank. Rows answer `kTargetRole` (their
/// node).
#include <QAbstractTableModel>
#include <unordered_map>

#include "plan/text/work.h"

namespace cleave::views {

class LayersModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    Name,
    Kind,
    StrategyColumn,
    Gather,
    InputParallel,
    SequenceParallelColumn,
    Weight,
    Local,
    Reason,
    ColumnCount
  };
  explicit LayersModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  /// Null: no plan.
  void setPlan(std::shared_ptr<const plan::Plan> plan);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const program::ParameterShards* weightOf(const plan::LayerPlan& layer) const;
  plan::LayerSplit effectiveStrategy(const plan::LayerPlan& layer) const;
  QString text(const plan::LayerPlan& layer, int column) const;
  std::shared_ptr<const plan::Plan> m_plan;
  std::unordered_map<std::string, const program::ParameterShards*> m_parameters;
};

}  // namespace cleave::views
