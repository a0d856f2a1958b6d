#pragma once
/// The search dock's pages: the event log with the timeline above, and the breakpoints.
#include <QWidget>

#include "views/panels/event_log.h"
#include "views/panels/timeline.h"
#include "views/session/selection.h"

class QLineEdit;

namespace cleave::views {

class SearchPanel : public QWidget {
  Q_OBJECT
 public:
  SearchPanel(Debugger& debugger, const Plans& plans, const Selection& selection, QWidget* parent = nullptr);

 private:
  Debugger& m_debugger;
  const Selection& m_selection;
  EventLogModel* m_model;
  Timeline* m_timeline;
  EventLogView* m_log;
};

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
