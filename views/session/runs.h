#pragma once
/// Running the shown plan on local ranks: why it could not start, what is known of the run while it goes on, how it
/// ended. One run at a time; GUI thread only.
///
///     runs.run(2, launch::Backend::Auto);     // solves first when the plan is for another number of ranks
///     connect(&runs, &Runs::sampled, ...);    // runs.state()->monitor->snapshot()
#include <QTimer>

#include "pipeline/report.h"
#include "views/session/plans.h"
#include "views/session/run_monitor.h"

namespace cleave::views {

/// What was run and how it ended; `report` is null while it runs or when it could not start.
struct RunState {
  int ranks = 0;
  launch::Backend backend = launch::Backend::Auto;
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<RunMonitor> monitor;
  std::optional<pipeline::RunReport> report;
  QString failure;  ///< one sentence, when it could not start or was stopped
  bool isActive = false;

  /// Ranks were started, or still may be: there is something to see of them.
  bool hasRanks() const { return isActive || report || monitor->hasStarted(); }
};

class Runs : public QObject {
  Q_OBJECT
 public:
  Runs(const OpenedModel& opened, Settings& settings, const Plans& plans, Jobs& jobs, Notices& notices,
       QObject* parent = nullptr);

  /// The run under way, or the last one of the plan that is shown; null: neither.
  const RunState* state() const;
  void run(int ranks, launch::Backend backend, bool ignoresMemory = false);
  /// Why `run` would start no ranks, so many, whatever their memory; empty: it would, or solves first.
  QString whyNot(int ranks) const;
  /// What `cleave-cli run` is to be given for what `run` does here; empty without a model folder.
  QStringList arguments(int ranks) const;
  void stop() { m_jobs.stop(); }

  // For the session.
  void runOnceSolved(int ranks, launch::Backend backend) { m_afterSolve = {ranks, backend}; }
  void dropWanted() { m_afterSolve.reset(); }  ///< what waits for a solve does not run after all
  void goOnAfterSolve(const QString& solved);  ///< `solved`: how it went
  void forget();                               ///< another model is open; everyone is told by `announce`
  void announce() { emit changed(); }
  void close() { m_sampleTimer.stop(); }

 signals:
  void changed();  ///< a run started or ended
  void sampled();  ///< at most 5 times a second while it goes on

 private:
  void start(int ranks, launch::Backend backend, bool ignoresMemory);
  void take(const Result<pipeline::RunReport>& report);
  const OpenedModel& m_opened;
  Settings& m_settings;
  const Plans& m_plans;
  Jobs& m_jobs;
  Notices& m_notices;
  std::optional<RunState> m_state;
  std::optional<std::pair<int, launch::Backend>> m_afterSolve;
  QTimer m_sampleTimer;
};

}  // namespace cleave::views
