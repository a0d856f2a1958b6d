#pragma once
/// The modules of a model as a tree, each with the bar that the canvas has for it (canvas/split_counts.h). Three or
/// more equal neighbours
/// ("layers.0" to "layers.31") stand under one stack row "0 – 31  ×32".
///
/// Columns: Module, Split, Operators. Rows answer `kTargetRole` (their module).
#include <QAbstractItemModel>
#include <vector>

#include "views/session/step_state.h"
#include "views/widgets/chip_delegate.h"

namespace cleave::views {

class ModulesModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { Name, Split, Operators, ColumnCount };
  explicit ModulesModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}

  void setGraph(std::shared_ptr<const graph::Graph> graph);
  void setState(const std::shared_ptr<const StepState>& state);  ///< null: nothing is decided
  QModelIndex indexOf(ScopeId scope) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Item {
    ScopeId scope;
    int parent = -1, row = 0;
    int stackSize = 0;  ///< > 0: a stack row of so many modules
    int operators = 0;  ///< calls inside, modules below included
    std::vector<int> children;
    QString label;
    SplitTally tally;
  };
  void addChildren(int parentItem, const std::vector<std::vector<ScopeId>>& childScopes,
                   const std::vector<std::size_t>& hashes);
  int addItem(int parentItem, ScopeId scope, const QString& label);
  SplitTally tallyOf(const Item& item) const;

  std::shared_ptr<const graph::Graph> m_graph;
  std::unique_ptr<SplitCounts> m_counts;
  std::vector<Item> m_items;  ///< 0 is the model itself
  std::vector<int> m_itemOfScope;
  std::vector<std::uint32_t> m_operatorsOfScope;
};

}  // namespace cleave::views
