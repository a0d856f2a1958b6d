#pragma once
/// How the open model is split in the shown plan or step of its search. One module tree and one count for all views:
/// canvas, legend, modules tree and table of operators. GUI thread only.
///
/// Follows the debugger and updates before any view does, so that in a slot of Debugger::stepChanged the counts belong
/// to that step.
///
///     view.setSplits(splits.counts());     // at OpenedModel::changed: another model has other counts
///     connect(&splits, &Splits::changed, &view, [&](const auto& nodes) { view.showSplits(nodes); });
#include "views/graph/model/split_counts.h"
#include "views/session/debugger.h"
#include "views/session/opened_model.h"

namespace cleave::views {

class Splits : public QObject {
  Q_OBJECT
 public:
  Splits(const OpenedModel& opened, const Debugger& debugger, QObject* parent = nullptr);

  /// Null: no model is open. The same object as long as a model is open; its numbers follow the steps.
  const std::shared_ptr<const SplitCounts>& counts() const { return m_shared; }

 signals:
  /// Layers that changed and makers of values that changed, ascending, without duplicates; never empty. After a jump:
  /// all.
  void changed(const std::vector<cleave::graph::NodeId>& nodes);

 private:
  friend class Session;  // opens models
  void applyOpened();    ///< another model was opened
  void follow();
  SplitSource source() const;

  const OpenedModel& m_opened;
  const Debugger& m_debugger;
  std::shared_ptr<SplitCounts> m_counts;
  std::shared_ptr<const SplitCounts> m_shared;  ///< the same
  std::shared_ptr<const StepState> m_state;     ///< the counted state; null: nothing is decided
};

}  // namespace cleave::views
