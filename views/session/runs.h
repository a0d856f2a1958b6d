#pragma once
/// Running the shown plan on local ranks: how it is to run, why it could not start, what is known of the run while it
/// goes on, how it ended, where it first computed something else. One run at a time; GUI thread only.
///
///     runs.run({.ranks = 2});                 // solves first when the plan is for another number of ranks
///     connect(&runs, &Runs::sampled, ...);    // runs.state()->monitor->snapshot()
#include <QTimer>
#include <utility>

#include "pipeline/bisect.h"
#include "pipeline/report.h"
#include "views/session/plans.h"
#include "views/session/run_history.h"
#include "views/session/run_monitor.h"

namespace cleave::views {

/// How a plan is to be run here.
struct RunSettings {
  int ranks = 2;
  launch::Backend backend = launch::Backend::Auto;
  program::Training training = {};  ///< without steps: one forward pass
  bool ignoresMemory = false;
};
/// A plan can be run so as it is: for so many ranks, and for training with this optimizer where that is asked for.
bool isFor(const plan::Plan& plan, const RunSettings& settings);

/// What was run and how it ended; `report` is null while it runs or when it could not start.
struct RunState {
  RunSettings settings;
  launch::Backend backend = launch::Backend::Auto;  ///< that the ranks use; Auto until it is known
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<RunMonitor> monitor;
  std::shared_ptr<const pipeline::RunReport> report;
  QString failure;  ///< one sentence, when it could not start or was stopped
  bool isActive = false;

  /// Ranks were started, or still may be: there is something to see of them.
  bool hasRanks() const { return isActive || report || monitor->hasStarted(); }
  /// Something was compared, and was not the same.
  bool hasDifference() const;
};

/// Where the ranks of a plan first compute something else than an unsplit run.
struct FirstDifference {
  std::shared_ptr<const plan::Plan> plan;
  std::optional<pipeline::Bisection> found;  ///< nullopt: it is being looked for, or could not be
  QString failure;                           ///< why it could not be
  bool isPending() const { return !found && failure.isEmpty(); }
};

class Runs : public QObject {
  Q_OBJECT
 public:
  Runs(const OpenedModel& opened, Settings& settings, const Plans& plans, Jobs& jobs, Notices& notices,
       QObject* parent = nullptr);

  /// What the next run is asked; its ranks follow those that are solved for.
  const RunSettings& settings() const { return m_runSettings; }
  void setSettings(const RunSettings& settings);
  /// The run under way, or the last one of the plan that is shown; null: neither.
  const RunState* state() const;
  void run(const RunSettings& settings);
  /// What ranks with these settings would communicate over; nullopt: CUDA has not answered yet, and `settingsChanged`
  /// follows when it has. Asks it where nobody has.
  std::optional<Result<launch::BackendChoice>> backendFor(const RunSettings& settings);
  /// Why `run` would start no ranks, whatever their memory; empty: it would, or solves first.
  QString whyNot(const RunSettings& settings) const;
  /// What `cleave-cli run` is to be given for what `run` does here; empty without a model folder.
  QStringList arguments(const RunSettings& settings) const;
  void stop() { m_jobs.stop(); }

  /// Runs the plan that is shown and the model unsplit, on the backend of the settings, and compares value by value.
  void findFirstDifference();
  /// Of the plan that is shown; null: it was not looked for.
  const FirstDifference* firstDifference() const;
  Worker& prober() { return m_prober; }
  bool isProbing() const { return m_prober.isBusy(); }
  RunHistory& history() { return m_history; }
  const RunHistory& history() const { return m_history; }

  // For the session.
  void runOnceSolved(const RunSettings& settings) { m_afterSolve = settings; }
  /// What waits for a solve does not run after all.
  std::optional<RunSettings> dropWanted() { return std::exchange(m_afterSolve, std::nullopt); }
  void goOnAfterSolve(const QString& solved);  ///< `solved`: how it went
  void forget();                               ///< another model is open; everyone is told by `announce`
  void announce() { emit changed(); }
  void close() { m_sampleTimer.stop(); }

 signals:
  void changed();  ///< a run started or ended
  void sampled();  ///< at most 5 times a second while it goes on
  void settingsChanged();
  void firstDifferenceChanged();

 private:
  bool solvesFirst(const RunSettings& settings) const { return !m_plans.plan() || !isFor(*m_plans.plan(), settings); }
  void start(const RunSettings& settings);
  void takeDifference(const std::shared_ptr<const plan::Plan>& plan, const Result<pipeline::Bisection>& found);
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
  Worker m_prober;  ///< asks CUDA: a driver that hangs holds up nothing else
};

}  // namespace cleave::views
