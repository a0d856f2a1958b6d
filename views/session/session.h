#pragma once
/// One sitting with Cleave, without a window: opens a model, solves it, runs its plan. It is made of parts, each with
/// its own header and signals, and lets them work together; a view takes only the parts that it follows.
///
///     OpenedModel   what is open                  Settings    what the next solve is asked, with undo
///     Plans         branches A and B, their diff  Debugger    the recorded search, step by step
///     Splits        how the model is split there  Selection   focus, history, find
///     Runs          ranks under way               Answers     why, why not, what helps, world sizes, front
///     Jobs, Files, Notices   work, what is written, what is said
///
/// Results are immutable and shared (`shared_ptr<const ...>`); a failed open, solve or run leaves all as it was and
/// says one sentence. Owned by `main` or a test, outlives its views; GUI thread only.
///
///     Session session;
///     session.openSource("models/llama");         // opens, then solves with settings()
///     connect(&session.debugger(), &Debugger::stepChanged, ...);
#include "exchange/foreign_plan.h"
#include "pipeline/saved_session.h"
#include "views/session/answers.h"
#include "views/session/files.h"
#include "views/session/runs.h"
#include "views/session/selection.h"
#include "views/session/splits.h"

namespace cleave::views {

/// What a saved session tells of the canvas.
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

  /// Of the window: "Tiny Llama", or the folder's name.
  QString title() const { return m_opened.title(m_settings.options().ranks); }

  /// Whatever Cleave opens, also a Hub id. A plan of another library becomes demands on the model that is open. A model
  /// is solved with `settings()`; a plan stands there as it was made, without the search that led to it; of a recorded
  /// search there is the graph and its steps, but no plan.
  void open(const QString& path);
  /// The open model's weights, which its Hub has, and then such a run.
  void fetchWeightsAndRun(const RunSettings& run);
  /// A model with capture options of its own; for tests.
  void openSource(const QString& folder, const torch_capture::CaptureOptions& options = {.cutsSequence = true});
  void openSample(const pipeline::Sample& sample);
  /// Captures the open model again with other options; whether with dropout, the settings say.
  void recapture(const torch_capture::CaptureOptions& options) { recapture(options, m_settings.options()); }
  /// The same for so many ranks, and runs what comes of it.
  void recaptureAndRun(const torch_capture::CaptureOptions& options, const RunSettings& run);
  void solve();
  void saveTrace(const QString& file);
  /// What is open, its branches, demands and breakpoints and the place where its user stands; opened like a model.
  void save(const QString& file, const SavedView& view);

  bool isIdle() const;  ///< neither jobs nor reads nor questions are under way
  /// Asks to stop, closes all queues, joins for two seconds at most (see Worker::hasLeftBehind).
  void shutdown();

 signals:
  /// A saved session stands as it was left, after all of its work; no file: not all of it could be made again.
  void sessionRestored(const QString& file, const cleave::views::SavedView& view);

 private:
  struct Solve;
  struct Arrival;
  using Load = std::function<Worker::Completion(const Progress&)>;
  void connectParts();
  void postOpen(const QString& path, Load load);
  // On the worker, which may outlive the session: only what they answer touches it.
  static Worker::Completion loadModel(Session* session, const QString& path,
                                      const torch_capture::CaptureOptions& options,
                                      const pipeline::SolveOptions& settings, std::optional<pipeline::Sample> sample,
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
  void showSaved(pipeline::SolveOptions options);
  Worker::Completion loadForeign(const Result<exchange::ForeignPlan>& read);
  static Worker::Completion loadTrace(Session* session, const QString& path, const Progress& progress);
  void recapture(const torch_capture::CaptureOptions& options, const pipeline::SolveOptions& settings);
  enum class Weights { AsTheyAre, Fetched };
  void openAgain(const torch_capture::CaptureOptions& options, const pipeline::SolveOptions& settings, Weights weights);
  pipeline::SolveOptions settingsFor(const RunSettings& run) const;
  /// The settings want the model with the dropout that it was captured without, or without it.
  bool isCapturedOtherwise() const;
  void failOpen(const Error& error);
  void takeOpened(const Arrival& arrival);
  void checkOpened(const QString& path);
  void takeLiveTrace(std::shared_ptr<const solve::Trace> trace);
  void takeSolve(const Solve& solve, const pipeline::SolveOptions& options);
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
  std::shared_ptr<const solve::Trace> m_liveTrace;    ///< of the solve under way
  std::shared_ptr<const solve::Trace> m_traceBefore;  ///< shown again when the search that replaced it fails
  std::uint64_t m_solveGeneration = 0;
  struct Restored {
    QString file;
    pipeline::SavedSession saved;
    bool solvesAfterOpening = false;  ///< a model; plans and traces stand as they are
    std::size_t nextBranch = 0;       ///< to be solved
    bool isWhole = true;              ///< each piece of work so far has succeeded
  };
  std::optional<Restored> m_restored;  ///< a saved session that is being opened
};

}  // namespace cleave::views
