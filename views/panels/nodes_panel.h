#pragma once
/// The dock of all operators, as a table: the canvas's content for keyboards and screen readers.
#include "views/panels/marked_table.h"
#include "views/session/selection.h"
#include "views/session/splits.h"

namespace cleave::views {

class NodesModel;

class NodesPanel : public MarkedTable<NodesModel> {
  Q_OBJECT
 public:
  NodesPanel(const OpenedModel& opened, const Plans& plans, const Splits& splits, Selection& selection,
             QWidget* parent = nullptr);
};

}  // namespace cleave::views
