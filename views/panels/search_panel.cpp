#include "views/panels/search_panel.h"

#include "views/widgets/panel_parts.h"

namespace cleave::views {

SearchPanel::SearchPanel(Debugger& debugger, const Plans& plans, const Selection& selection, QWidget* parent)
    : QWidget(parent),
      m_debugger(debugger),
      m_selection(selection),
      m_model(new EventLogModel(this)),
      m_timeline(new SearchTimeline(debugger, plans)),
      m_log(new EventLogView(*m_model)) {
  m_log->setFrameShape(QFrame::NoFrame);
  // In a low window both shrink before the graph does.
  m_timeline->setMinimumHeight(m_timeline->sizeHint().height() / 2);
  m_timeline->setMaximumHeight(m_timeline->sizeHint().height());
  m_log->setMinimumHeight(2 * fontMetrics().height());
  makeColumn(this, {m_timeline, m_log}, m_log);
  connect(&debugger, &Debugger::traceChanged, this, [this] {
    const bool hasTrace = m_debugger.trace() != nullptr;
    m_model->setTrace(m_debugger.trace());
    m_log->setVisible(hasTrace);
    // Without a search the empty text gets the whole panel.
    m_timeline->setMaximumHeight(hasTrace ? m_timeline->sizeHint().height() : QWIDGETSIZE_MAX);
  });
  connect(&debugger, &Debugger::traceGrew, m_model, &EventLogModel::grow);
  connect(&debugger, &Debugger::stepChanged, this, [this] {
    m_model->grow();
    m_log->setStep(m_debugger.wantedStep());
  });
  connect(&selection, &Selection::revealRequested, this, [this] {
    const auto& state = m_debugger.state();
    const NodeId node = m_selection.focus().node;
    if (!state || !node.isValid() || node.index() >= state->assignedAt.size()) return;
    if (const StepId at = state->assignedAt[node.index()]; at != kNoStep) m_log->mark(at);
  });
  connect(m_log, &EventLogView::stepChosen, &debugger, &Debugger::seek);
}

}  // namespace cleave::views
