#pragma once
/// A session of Cleave without a window: opens a model, solves it, runs its plan. It consists of parts, each with its
/// own header and signals, and connects them. A view uses only the parts that it follows.
///
///   OpenedModel   the open model                Settings    settings of the next solve, with undo
///   Plans         branches A and B, their diff  Debugger    the recorded search, step by step
///   Splits        split of the shown plan       Selection   focus, history, find
///   Runs          local runs                    Answers     why, why not, remedies, world sizes, front
///   Jobs, Files, Notices   long jobs, written files, messages
///
/// Results are immutable and shared (`shared_ptr<const ...>`). A failed open, solve or run changes nothing and reports
/// one sentence. Owned by `main` or a test, outlives its views; GUI thread only.
///
///     Session session;
///     session.openSource("models/llama");         // opens, then solves with settings()
///     connect(&session.debugger(), &Debugger::stepChanged, ...);
#include "exchange/foreign_plan.h"
#include "pipeline/session/saved_session.h"
#include "views/session/answers.h"
#include "views/session/files.h"
#include "views/session/runs.h"
#include "views/session/selection.h"
#include "views/session/splits.h"

namespace cleave::views {

/// The canvas state in a saved session.
struct SavedView {
  std::vector<std::string> unfolded;  ///< modules' paths
  std::string colours;                ///< "axis", "regret", ...
};

class Session : public QObject {
  Q_OBJECT
 public:
  explicit Session(QObject* parent = nullptr);
  ~Session() override;

  OpenedModel& opened() { return m_opened; }
  Settings& settings() { return m_settings; }
  Plans& plans() { return m_plans; }
  Debugger& debugger() { return m_debugger; }
  Splits& splits() { return m_splits; }
  Selection& selection() { return m_selection; }
  Answers& answers() { return m_answers; }
  Runs& runs() { return m_runs; }
  Jobs& jobs() { return m_jobs; }
  Files& files() { return m_files; }
  Notices& notices() { return m_notices; }
  QUndoStack& undoStack() { return m_undo; }

  /// The window's title: "Tiny Llama", or the folder's name.
  QString title() const { return m_opened.title(m_settings.spec().ranks); }

  /// Opens any supported source, also a Hub id. A model is solved with `settings()`. A plan is shown unchanged, without
  /// its search. A recorded search has a graph and steps, but no plan. A plan of another library becomes demands on the
  /// open model.
  void open(const QString& path);
  /// Fetches the open model's weights from its Hub, then starts this run.
  void fetchWeightsAndRun(const RunSettings& run);
  /// Opens a model with its own inputs; for tests.
  void openSource(const QString& folder, const spec::InputSpec& input = {});
  void openSample(const pipeline::Sample& sample);
  /// Captures the open model again with other inputs. Dropout comes from the settings.
  void recapture(const spec::InputSpec& input) { recapture(input, m_settings.spec()); }
  /// The same for this number of ranks, followed by a run.
  void recaptureAndRun(const spec::InputSpec& input, const RunSettings& run);
  void solve();
  void saveTrace(const QString& file);
  /// Saves the open model, its branches, demands, breakpoints and the user's place. A session file is opened like a
  /// model.
  void save(const QString& file, const SavedView& view);

  bool isIdle() const;  ///< no jobs, reads or questions are running
  /// Asks to stop, closes all queues, and joins for two seconds at most (see Worker::hasAbandonedThread).
  void shutdown();

 signals:
  /// A saved session has been restored. Empty file: some of it could not be restored.
  void sessionRestored(const QString& file, const cleave::views::SavedView& view);

 private:
  struct Solve;
  struct Arrival;
  using Load = std::function<Worker::Completion(const Progress&)>;
  void connectParts();
  void postOpen(const QString& path, Load load);
  // These run on the worker, which may outlive the session. Only their completions access it.
  static Worker::Completion loadModel(Session* session, const QString& path, const spec::InputSpec& input,
                                      const spec::PlanSpec& settings, std::optional<pipeline::Sample> sample,
                                      bool isBorrowed, const Progress& progress);
  static Worker::Completion loadPlan(Session* session, const QString& path, const Progress& progress);
  static Worker::Completion loadSession(Session* session, const QString& path, const hub::Watcher& watcher,
                                        const Progress& progress);
  static std::optional<pipeline::Sample> sampleOf(const pipeline::SavedSession& saved);
  pipeline::SavedSession saved() const;
  void goOnRestoring(Activity what, bool hasSucceeded);
  void finishRestoring();
  void stopRestoring();
  void startSolve();
  void restorePlace(const pipeline::SavedSession& saved);
  Worker::Completion loadForeign(const Result<exchange::ForeignPlan>& read);
  static Worker::Completion loadTrace(Session* session, const QString& path, const Progress& progress);
  void recapture(const spec::InputSpec& input, const spec::PlanSpec& settings);
  enum class Weights { AsTheyAre, Fetched };
  void openAgain(const spec::InputSpec& input, const spec::PlanSpec& settings, Weights weights);
  spec::PlanSpec settingsFor(const RunSettings& run) const;
  /// The settings' dropout differs from the dropout in the capture.
  bool isCapturedOtherwise() const;
  void failOpen(const Error& error);
  void applyOpened(const Arrival& arrival);
  void checkOpened(const QString& path);
  void applyLiveTrace(std::shared_ptr<const solve::Trace> trace);
  void applySolve(const Solve& solve, const spec::PlanSpec& spec);
  void failSolve(const Error& error);
  void reportSolve(const Solve& solve);
  void seekRemedies();

  QUndoStack m_undo;
  Notices m_notices;
  OpenedModel m_opened;
  Jobs m_jobs;
  Files m_files;
  Settings m_settings;
  Debugger m_debugger;
  Splits m_splits;
  Plans m_plans;
  Selection m_selection;
  Runs m_runs;
  Answers m_answers;
  std::shared_ptr<const solve::Trace> m_liveTrace;    ///< of the running solve
  std::shared_ptr<const solve::Trace> m_traceBefore;  ///< shown again if the search that replaced it fails
  std::uint64_t m_solveGeneration = 0;
  struct Restored {
    QString file;
    pipeline::SavedSession saved;
    bool solvesAfterOpening = false;  ///< true for a model; plans and traces are not solved
    std::size_t nextBranch = 0;       ///< the next one to solve
    bool isWhole = true;              ///< all work so far has succeeded
  };
  std::optional<Restored> m_restored;  ///< a saved session that is being restored
};

}  // namespace cleave::views
