#pragma once
/// The dock of the plan's layers, as a table.
#include "views/session/plans.h"
#include "views/session/selection.h"
#include "views/widgets/tables.h"

namespace cleave::views {

class LayersModel;

class LayersPanel : public TablePanel {
  Q_OBJECT
 public:
  LayersPanel(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
              QWidget* parent = nullptr);

 private:
  LayersPanel(LayersModel* model, const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
              QWidget* parent);
  void showPlan();
  const Plans& m_plans;
  LayersModel* m_model;
};

}  // namespace cleave::views
