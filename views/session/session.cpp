#include "views/session/session.h"

#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr auto kShutdownLimit = std::chrono::seconds(2);
}

Session::Session(QObject* parent)
    : QObject(parent),
      m_jobs(m_notices),
      m_files(m_notices),
      m_settings(m_opened, m_undo),
      m_debugger(m_undo, m_notices),
      m_splits(m_opened, m_debugger),
      m_plans(m_opened, m_settings, m_jobs, m_debugger, m_notices),
      m_selection(m_opened, m_debugger),
      m_runs(m_opened, m_settings, m_plans, m_jobs, m_notices) {
  connectParts();
}

Session::~Session() { shutdown(); }

/// Created before any view, so that the parts are consistent when a view is notified.
void Session::connectParts() {
  connect(&m_settings, &Settings::solveWanted, this, &Session::solve);
  for (const auto signal : {&Settings::changed, &Settings::demandsChanged})
    connect(&m_settings, signal, this, [this] { m_answers.setSpec(m_settings.spec()); });
  connect(&m_plans, &Plans::recaptureWanted, this,
          qOverload<const spec::InputSpec&, const spec::PlanSpec&>(&Session::recapture));
  connect(&m_plans, &Plans::planChanged, this, [this] {
    m_answers.setSolved(m_plans.solved());
    m_answers.analyse(m_selection.focus().node, m_selection.focus().value);
    seekRemedies();
  });
  connect(&m_selection, &Selection::focusChanged, this,
          [this] { m_answers.analyse(m_selection.focus().node, m_selection.focus().value); });
  // At a conflict, the remedies are for that conflict. At other steps they are for the whole search.
  connect(&m_debugger, &Debugger::arrived, this, [this] {
    if (const auto& conflict = m_debugger.state()->conflict)
      m_answers.seekRemedies(conflict);
    else
      seekRemedies();
  });
  connect(&m_runs, &Runs::firstDifferenceChanged, this, [this] {
    const FirstDifference* difference = m_runs.firstDifference();
    if (difference && difference->found && difference->found->first)
      m_selection.focusValue(difference->found->first->value);
  });
  connect(&m_jobs, &Jobs::ended, this, &Session::goOnRestoring);
  connect(&m_jobs, &Jobs::stopWanted, this, [this] {
    m_runs.dropWanted();
    stopRestoring();
    m_debugger.reads().cancelAll();
    m_files.worker().cancelAll();
    m_answers.cancel();
  });
}

void Session::shutdown() {
  m_debugger.endLive();
  m_runs.close();
  // All are asked first, so that they end in parallel.
  const auto workers = {&m_jobs.worker(), &m_debugger.reads(), &m_runs.history().worker(), &m_runs.prober()};
  for (Worker* worker : workers) worker->close();
  m_answers.close();
  const auto until = Worker::Clock::now() + kShutdownLimit;
  m_files.close(until);
  for (Worker* worker : workers) worker->join(until);
  m_files.join(until);
  m_answers.join(until);
}

bool Session::isIdle() const {
  return m_jobs.isIdle() && !m_debugger.reads().isBusy() && !m_files.isBusy() && m_answers.isIdle() &&
         !m_runs.history().isBusy() && !m_runs.isProbing();
}

void Session::seekRemedies() {
  if (m_plans.isWorthRemedies()) m_answers.seekRemedies(std::nullopt);
}

void Session::saveTrace(const QString& file) {
  if (!m_debugger.trace()) return;
  m_files.write(file, [file, trace = m_debugger.trace()](const Progress& progress) {
    return solve::saveTrace(*trace, toStd(file), progress);
  });
}

}  // namespace cleave::views
