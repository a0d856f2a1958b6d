#pragma once
/// The breakpoints as a table, with a line to type another one.
#include <QWidget>

#include "views/session/selection.h"

class QLineEdit;

namespace cleave::views {

class BreakpointsPanel : public QWidget {
  Q_OBJECT
 public:
  BreakpointsPanel(const OpenedModel& opened, Debugger& debugger, Selection& selection, Notices& notices,
                   QWidget* parent = nullptr);

 private:
  void add();
  const OpenedModel& m_opened;
  Debugger& m_debugger;
  Notices& m_notices;
  QLineEdit* m_input;
};

}  // namespace cleave::views
