#pragma once
/// Marks rows that differ between the branches A and B: a delta before the name, and a word in its tool tip. Lies
/// between a table or tree model and its filter, so that none of the models has to know of branches.
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
  void announce(const QModelIndex& parent);  ///< rows of any depth may carry other marks
  const OpenedModel& m_opened;
  const Plans& m_plans;
  QSet<Target> m_targets;
  QIcon m_icon;
};

/// Nodes of the values and layers that a diff names, ascending, each once.
std::vector<NodeId> changedNodes(const plan::PlanDiff& diff, const graph::Graph& graph);

}  // namespace cleave::views
