#pragma once
/// The dock of all operators, as a table: the canvas's content for keyboards and screen readers.
#include "views/session/plans.h"
#include "views/session/selection.h"
#include "views/session/splits.h"
#include "views/widgets/tables.h"

namespace cleave::views {

class NodesModel;

class NodesPanel : public TablePanel {
  Q_OBJECT
 public:
  NodesPanel(const OpenedModel& opened, const Plans& plans, const Splits& splits, Selection& selection,
             QWidget* parent = nullptr);

 private:
  NodesPanel(NodesModel* model, const OpenedModel& opened, const Plans& plans, const Splits& splits,
             Selection& selection, QWidget* parent);
};

}  // namespace cleave::views
