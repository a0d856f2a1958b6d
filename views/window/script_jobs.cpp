#include "views/window/script_jobs.h"

#include <QElapsedTimer>
#include <QEventLoop>
#include <QTimer>

#include "views/window/graph_area.h"

namespace cleave::views {

namespace {
constexpr int kWaitLimitMs = 600'000;
constexpr int kPollMs = 10;
}  // namespace

ScriptJobs::ScriptJobs(MainWindow& window) : m_window(window), m_session(window.session()) {
  QObject::connect(&m_session.jobs(), &Jobs::ended, &m_context,
                   [this](Activity what, bool succeeded, const QString& sentence) {
                     const auto started = m_startedAt.find(what);
                     const int line = started == m_startedAt.end() ? m_line : started->second;
                     if (started != m_startedAt.end()) m_startedAt.erase(started);
                     if (!succeeded && !m_stops && !m_failure) m_failure = {line, sentence};
                   });
}

void ScriptJobs::expect(const std::vector<Activity>& jobs) {
  m_stops = false;
  for (const Activity job : jobs) m_startedAt[job] = m_line;
}

void ScriptJobs::stop() {
  m_stops = true;
  m_session.jobs().stop();
}

Result<void> ScriptJobs::need(ScriptNeed need) {
  if (need == ScriptNeed::Nothing) return {};
  CLEAVE_TRY_VOID(reach(ScriptState::ModelOpened));
  if (!m_session.opened().model()) return fail(ErrorCode::Negative, "no model is open");
  if (need == ScriptNeed::Model) return {};
  // A running search can be stepped through as soon as it is shown.
  CLEAVE_TRY_VOID(waitUntil(
      [this] {
        return (m_session.jobs().activity() != Activity::Solving || m_session.debugger().isLive()) &&
               !m_session.debugger().reads().isBusy();
      },
      "the search"));
  if (!m_session.debugger().trace()) return fail(ErrorCode::Negative, "there is no search to step through");
  return {};
}

Result<void> ScriptJobs::reach(ScriptState state) {
  const Jobs& jobs = m_session.jobs();
  switch (state) {
    case ScriptState::Now:
    case ScriptState::Waited: return {};
    case ScriptState::ModelOpened: return waitUntil([&] { return jobs.activity() != Activity::Opening; }, "the model");
    case ScriptState::RunEnded:
      return jobs.activity() == Activity::Running ? reach(ScriptState::Settled) : Result<void>();
    case ScriptState::JobsIdle: return waitUntil([&] { return jobs.activity() == Activity::Idle; }, "the previous job");
    case ScriptState::Settled: return waitUntil([this] { return m_window.isSettled(); }, "the running work");
    case ScriptState::StepShown:
      return waitUntil([this] { return !m_session.debugger().reads().isBusy(); }, "the step");
    case ScriptState::Drawn:
      return waitUntil([this] { return m_window.graphArea().isSettled() && !m_session.debugger().reads().isBusy(); },
                       "the drawing");
    case ScriptState::SessionWritten: return waitUntil([this] { return !m_session.files().isBusy(); }, "the session");
  }
  return {};
}

Result<void> ScriptJobs::pause(int milliseconds) {
  QElapsedTimer elapsed;
  elapsed.start();
  return waitUntil([&] { return elapsed.elapsed() >= milliseconds; }, "the pause");
}

Result<void> ScriptJobs::waitUntil(const std::function<bool()>& isDone, const char* what) {
  QElapsedTimer elapsed;
  elapsed.start();
  // Two idle checks in a row, because a completion may start the next piece of work.
  for (int quietLooks = 0; quietLooks < 2;) {
    QEventLoop loop;
    QTimer::singleShot(kPollMs, &loop, &QEventLoop::quit);
    loop.exec();
    if (m_failure) return {};
    if (isDone())
      ++quietLooks;
    else
      quietLooks = 0;
    if (elapsed.elapsed() > kWaitLimitMs)
      return fail(ErrorCode::Negative, "timeout after {} s while waiting for {}", kWaitLimitMs / 1000, what);
  }
  return {};
}

}  // namespace cleave::views
