#pragma once
/// The jobs that a script starts: waits for states of the window, and keeps the first failed job with the line of the
/// command that started it. GUI thread; a wait runs an event loop.
///
///     jobs.enter(3);                               // the line of a command
///     CLEAVE_TRY_VOID(jobs.reach(ScriptState::Settled));
///     if (jobs.failure()) ...                      // a job failed meanwhile, and all waits end at once
#include <QObject>
#include <functional>
#include <map>
#include <optional>

#include "views/window/main_window.h"
#include "views/window/script_verb.h"

namespace cleave::views {

class ScriptJobs {
 public:
  explicit ScriptJobs(MainWindow& window);

  /// A command begins on this line.
  void enter(int line) { m_line = line; }
  /// The command of this line starts these jobs.
  void expect(const std::vector<Activity>& jobs);
  /// Stops all jobs. Jobs that end so have not failed.
  void stop();

  struct Failure {
    int line = 0;  ///< of the command that started the job
    QString sentence;
  };
  const std::optional<Failure>& failure() const { return m_failure; }

  /// Negative: there is no model or search, or a wait takes too long. Success if a job fails meanwhile.
  Result<void> need(ScriptNeed need);
  Result<void> reach(ScriptState state);
  Result<void> pause(int milliseconds);
  /// `what`: the end of "timeout while waiting for".
  Result<void> waitUntil(const std::function<bool()>& isDone, const char* what);

 private:
  MainWindow& m_window;
  Session& m_session;
  QObject m_context;  ///< ends the connection with this object
  int m_line = 0;
  std::map<Activity, int> m_startedAt;  ///< line of the command that started the running job
  std::optional<Failure> m_failure;
  bool m_stops = false;  ///< the running jobs were stopped by a command
};

}  // namespace cleave::views
