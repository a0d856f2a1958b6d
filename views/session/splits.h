#pragma once
/// How the open model is split at what is shown: a plan, or a step of its search. One module tree and one count for
/// all views; canvas, legend, modules tree and table of operators draw what stands here. GUI thread only.
///
/// Follows the debugger and hears of a step before any view does, so that in a slot of Debugger::stepChanged the counts
/// are of that step.
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

  /// Null: nothing is open. The same object for as long as a model is open; its numbers follow the steps.
  const std::shared_ptr<const SplitCounts>& counts() const { return m_shared; }

  // For the session.
  void takeOpened();  ///< the opened model is another one

 signals:
  /// Layers that differ from before and makers of values that do, ascending, each once; never empty. After a jump: all.
  void changed(const std::vector<cleave::graph::NodeId>& nodes);

 private:
  void follow();
  SplitSource source() const;

  const OpenedModel& m_opened;
  const Debugger& m_debugger;
  std::shared_ptr<SplitCounts> m_counts;
  std::shared_ptr<const SplitCounts> m_shared;  ///< the same
  std::shared_ptr<const StepState> m_state;     ///< that the counts are of; null: nothing is decided
};

}  // namespace cleave::views
