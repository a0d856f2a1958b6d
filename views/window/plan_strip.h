#pragma once
/// The summary of the shown plan above the graph: time and bytes, split share, replicated layers with causes, and the
/// plan's model. The figures are the plan's own, as on the command line.
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
