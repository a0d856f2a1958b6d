#pragma once
/// What is told of the shown plan before all else, above the graph: its time and bytes, how much of the model it
/// splits, how many layers it leaves whole and for which causes, and what it is a plan of. The figures are the plan's
/// own, as the command line writes them.
#include <QLabel>

#include "views/session/plans.h"
#include "views/session/selection.h"

namespace cleave::views {

class PlanStrip : public QLabel {
  Q_OBJECT
 public:
  PlanStrip(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
            QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refresh();
  const OpenedModel& m_opened;
  const Plans& m_plans;
};

}  // namespace cleave::views
