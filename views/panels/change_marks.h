#pragma once
/// Marks rows that differ between the branches A and B with a delta before the name and a word in the tooltip. It sits
/// between a table or tree model and its filter, so that the models do not depend on branches.
#include <QIcon>
#include <QIdentityProxyModel>
#include <QSet>

#include "views/base/target.h"
#include "views/session/plans.h"

namespace cleave::views {

class ChangeMarks : public QIdentityProxyModel {
  Q_OBJECT
 public:
  /// Follows the branches and marks rows of `source` by their kTargetRole.
  ChangeMarks(const OpenedModel& opened, const Plans& plans, QAbstractItemModel* source, QObject* parent);
  QVariant data(const QModelIndex& index, int role) const override;

 private:
  void refresh();
  void announce(const QModelIndex& parent);  ///< rows at any depth may have new marks
  const OpenedModel& m_opened;
  const Plans& m_plans;
  QSet<Target> m_targets;
  QIcon m_icon;
};

/// Nodes of the values and layers in a diff, ascending, without duplicates.
std::vector<NodeId> changedNodes(const plan::PlanDiff& diff, const graph::Graph& graph);

}  // namespace cleave::views
