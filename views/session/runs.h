#pragma once
/// Runs the shown plan on local ranks: the settings, the reason why it cannot start, the state of the run, its result,
/// and its first difference from an unsplit run. One run at a time; GUI thread only.
///
///     runs.run({.ranks = 2});                 // solves first when the plan is for another number of ranks
///     connect(&runs, &Runs::sampled, ...);    // runs.state()->monitor->snapshot()
#include <QTimer>
#include <utility>

#include "pipeline/bisect/bisect.h"
#include "pipeline/report/report.h"
#include "spec/run/run_spec.h"
#include "views/session/plans.h"
#include "views/session/run_history.h"
#include "views/session/run_monitor.h"

namespace cleave::views {

/// A local run on this number of ranks. Training without steps is one forward pass.
struct RunSettings : spec::RunSpec {
  int ranks = 2;
};
/// True if the plan can run unchanged: it is for this rank count, and for training with this optimizer if requested.
bool isFor(const plan::Plan& plan, const RunSettings& settings);

/// A run and its end. `report` is null while it runs, and if it could not start.
struct RunState {
  RunSettings settings;
  launch::Backend backend = launch::Backend::Auto;  ///< the ranks' backend; Auto until known
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<RunMonitor> monitor;
  std::shared_ptr<const pipeline::RunReport> report;
  QString failure;  ///< one sentence, if it could not start or was stopped
  bool isActive = false;

  /// Ranks were started or still may be, so there is something to show.
  bool hasRanks() const { return isActive || report || monitor->hasStarted(); }
  /// The results were compared and differ.
  bool hasDifference() const;
};

/// The first value that the ranks of a plan compute differently from an unsplit run.
struct FirstDifference {
  std::shared_ptr<const plan::Plan> plan;
  std::optional<pipeline::Bisection> found;  ///< nullopt: the search is running or failed
  QString failure;                           ///< the reason of the failure
  bool isPending() const { return !found && failure.isEmpty(); }
};

class Runs : public QObject {
  Q_OBJECT
 public:
  Runs(const OpenedModel& opened, Settings& settings, const Plans& plans, Jobs& jobs, Notices& notices,
       QObject* parent = nullptr);

  /// The settings of the next run. Its ranks follow the solve settings.
  const RunSettings& settings() const { return m_runSettings; }
  void setSettings(const RunSettings& settings);
  /// The current run, or the last run of the shown plan. Null: neither.
  const RunState* state() const;
  void run(const RunSettings& settings);
  /// The backend for ranks with these settings. nullopt: CUDA has not answered yet, and `settingsChanged` follows when
  /// it has. Sends the query if it was not sent before.
  std::optional<Result<launch::BackendChoice>> backendFor(const RunSettings& settings);
  /// The reason why `run` would start no ranks, apart from memory. Empty: it would start, or solve first.
  QString whyNot(const RunSettings& settings) const;
  /// The arguments of `cleave-cli run`, or of `cleave-cli train`, for the same run. Empty without a model's folder.
  QStringList arguments(const RunSettings& settings) const;
  void stop() { m_jobs.stop(); }

  /// Runs the shown plan and the unsplit model on the settings' backend, and compares value by value.
  void findFirstDifference();
  /// The difference for the shown plan. Null: not searched for.
  const FirstDifference* firstDifference() const;
  Worker& prober() { return m_prober; }
  bool isProbing() const { return m_prober.isBusy(); }
  RunHistory& history() { return m_history; }
  const RunHistory& history() const { return m_history; }

 signals:
  void changed();  ///< a run started or ended
  void sampled();  ///< at most 5 times a second during the run
  void settingsChanged();
  void firstDifferenceChanged();

 private:
  friend class Session;  // opens models, and continues after a solve
  void runOnceSolved(const RunSettings& settings) { m_afterSolve = settings; }
  /// Cancels the run that waits for a solve.
  std::optional<RunSettings> dropWanted() { return std::exchange(m_afterSolve, std::nullopt); }
  void goOnAfterSolve(const QString& solved);  ///< `solved`: the solve's result
  void forget();                               ///< another model is open; `announce` informs the views
  void announce() { emit changed(); }
  void close() { m_sampleTimer.stop(); }
  bool solvesFirst(const RunSettings& settings) const { return !m_plans.plan() || !isFor(*m_plans.plan(), settings); }
  void start(const RunSettings& settings);
  void applyDifference(const std::shared_ptr<const plan::Plan>& plan, const Result<pipeline::Bisection>& found);
  void take(const Result<pipeline::RunReport>& report);
  const OpenedModel& m_opened;
  Settings& m_settings;
  const Plans& m_plans;
  Jobs& m_jobs;
  Notices& m_notices;
  std::optional<RunState> m_state;
  std::optional<FirstDifference> m_difference;
  RunSettings m_runSettings;
  std::optional<RunSettings> m_afterSolve;
  RunHistory m_history;
  QTimer m_sampleTimer;
  Worker m_prober;  ///< queries CUDA: a driver that hangs must not block other work
};

}  // namespace cleave::views
