#pragma once
/// The search dock: the event log with the timeline above.
#include <QWidget>

#include "views/panels/event_log.h"
#include "views/panels/search_timeline.h"
#include "views/session/selection.h"

namespace cleave::views {

class SearchPanel : public QWidget {
  Q_OBJECT
 public:
  SearchPanel(Debugger& debugger, const Plans& plans, const Selection& selection, QWidget* parent = nullptr);

 private:
  Debugger& m_debugger;
  const Selection& m_selection;
  EventLogModel* m_model;
  SearchTimeline* m_timeline;
  EventLogView* m_log;
};

}  // namespace cleave::views
