#pragma once
/// The dock of the plan's layers, as a table.
#include "views/panels/marked_table.h"
#include "views/session/selection.h"

namespace cleave::views {

class LayersModel;

class LayersPanel : public MarkedTable<LayersModel> {
  Q_OBJECT
 public:
  LayersPanel(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
              QWidget* parent = nullptr);

 private:
  void showPlan();
  const Plans& m_plans;
};

}  // namespace cleave::views
