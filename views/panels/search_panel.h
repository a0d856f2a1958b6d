#pragma once
/// The search dock's pages: the event log with the timeline above, and the breakpoints.
#include <QWidget>

#include "views/panels/event_log.h"
#include "views/panels/timeline.h"

class QLineEdit;

namespace cleave::views {

class SearchPanel : public QWidget {
  Q_OBJECT
 public:
  explicit SearchPanel(Document& document, QWidget* parent = nullptr);

 private:
  Document& m_document;
  EventLogModel* m_model;
  Timeline* m_timeline;
  EventLogView* m_log;
};

class BreakpointsPanel : public QWidget {
  Q_OBJECT
 public:
  explicit BreakpointsPanel(Document& document, QWidget* parent = nullptr);

 private:
  void add();
  Document& m_document;
  QLineEdit* m_input;
};

}  // namespace cleave::views
