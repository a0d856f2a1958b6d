#pragma once
/// The modules of a model as a tree, with a bar of the placements inside each. Three or more equal neighbours
/// ("layers.0" to "layers.31") stand under one stack row "0 – 31  ×32".
///
/// Columns: Module, Placements, Operators. Rows answer `kTargetRole` ("scope:model.layers.3").
#include <QAbstractItemModel>
#include <vector>

#include "document.h"
#include "panels/chip_delegate.h"

namespace cleave::views {

class ModulesModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { Name, Placements, Operators, ColumnCount };
  explicit ModulesModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}

  void setGraph(std::shared_ptr<const graph::Graph> graph);
  /// New placements by ValueId; empty: none.
  void setPlacements(const std::vector<MaybePlacement>& placements);
  QModelIndex indexOf(ScopeId scope) const;
  ScopeId scopeAt(const QModelIndex& index) const;  ///< of a stack row: its first module

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
    TintCounts counts{};
  };
  void addChildren(int parentItem, const std::vector<std::vector<ScopeId>>& childScopes,
                   const std::vector<std::size_t>& hashes);
  void countUnassigned();
  int addItem(int parentItem, ScopeId scope, const QString& label);

  std::shared_ptr<const graph::Graph> m_graph;
  std::vector<Item> m_items;  ///< 0 is the model itself
  std::vector<int> m_itemOfScope;
  std::vector<int> m_operatorsOfScope;
  std::vector<Tint> m_tints;  ///< by ValueId: what `counts` count
};

}  // namespace cleave::views
