#pragma once
/// The open document: one model with its solve, trace, plan and run, and the focus every view shares. No widgets.
///
/// Results are immutable and shared (`shared_ptr<const ...>`); views keep none of their own and follow the signals. All
/// long work goes through two workers: *jobs* (open, solve, run: one after the other) and *reads* (seek, breakpoints,
/// timeline, search), so that a trace can be looked at while its search still runs. A failed open, solve or run leaves
/// the document as it was and says one sentence through `message`. GUI thread only.
///
/// Solving again with something changed keeps the solve before as branch A and shows the new one as branch B; every
/// view shows the shown branch. Solving again with the very options of A leaves A alone.
///
///     Document document;
///     document.openSource("models/llama", {});      // opens, then solves with settings()
///     connect(&document, &Document::stepChanged, ...);
///     document.seek(0);  document.stepBy(+1);  document.nextConflict();
#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <QUndoStack>

#include "plan/diff.h"
#include "views/session/answers.h"
#include "views/session/run_monitor.h"
#include "views/session/search_query.h"

namespace cleave::views {

class Document : public QObject {
  Q_OBJECT
 public:
  explicit Document(QObject* parent = nullptr);
  ~Document() override;

  // What is open; all null or empty before the first open.
  const std::shared_ptr<const pipeline::Model>& model() const { return m_model; }
  const std::shared_ptr<const pipeline::Solved>& solved() const { return m_solved; }
  const std::shared_ptr<const plan::Plan>& plan() const { return m_plan; }
  const std::shared_ptr<const solve::Trace>& trace() const { return m_trace; }
  const std::shared_ptr<const StepState>& stepState() const { return m_step; }
  /// About the focused node at the present step; null while it is being read, and without a trace.
  const std::shared_ptr<const solve::Decision>& decision() const { return m_decision; }
  const graph::Graph* graph() const { return m_model ? m_model->aten.get() : nullptr; }
  const QString& source() const { return m_source; }
  /// The folder of the open model; empty when there is none (a recorded search alone).
  QString modelFolder() const;
  /// What `cleave-cli run` is to be given for what `run` does here; empty without a model folder.
  QStringList runArguments(int ranks) const;
  QString title() const;  ///< "Tiny Llama", or the folder's name
  const std::optional<pipeline::Sample>& sample() const { return m_sample; }
  /// The settings came with a sample, plan or recording, and go with it: the next model has the user's own.
  bool hasBorrowedSettings() const { return m_isBorrowed; }
  /// A sample that meets conflicts is there to show them: it opens on the first one.
  bool isAboutConflicts() const;
  /// The run under way, or the last one of the plan that is shown; null: neither.
  const RunState* runState() const;

  // Settings of the next solve; changing them does not solve by itself.
  const pipeline::SolveOptions& settings() const { return m_settings; }
  void setRanks(int ranks);
  void setEngine(solve::Engine engine);
  void setSequenceParallel(rules::SequenceParallel mode);
  void setMenu(std::optional<rules::Menu> menu);  ///< nullopt: the engine's default
  void setTraining(bool isTraining);
  void setOptimizer(solve::Optimizer optimizer);
  /// A bundled profile by name, or a file; BadInput lists the names there are.
  Result<void> setDeviceProfile(const QString& nameOrFile);
  void setMemoryBudget(std::optional<std::int64_t> bytes);  ///< of one rank; nullopt: the device's memory
  void setSlack(double percent);                            ///< CostSettings::slackPercent
  /// True when solving now would answer for other settings than those of the shown branch.
  bool isOutdated() const;
  const torch_capture::CaptureOptions& captureOptions() const { return m_capture; }

  // Work.
  /// Whatever Cleave opens. A model is solved with `settings()`; a plan stands there as it was made, without the search
  /// that led to it; of a recorded search there is the graph and its steps, but no plan.
  void open(const QString& path);
  void openSource(const QString& folder, const torch_capture::CaptureOptions& options = {});
  void openSample(const pipeline::Sample& sample);
  void saveTrace(const QString& file);
  /// Calls `make` and writes what it answers, both on a worker, and says so in a message, followed by `note`.
  void save(const QString& file, std::function<QByteArray()> make, const QString& note = {});
  /// Captures the open model again with other options.
  void recapture(const torch_capture::CaptureOptions& options) { recapture(options, m_settings); }
  void solve();
  /// Solves first when the plan is for another number of ranks.
  void run(int ranks, launch::Backend backend, bool ignoresMemory = false);
  /// Ends the running work; a stopped search keeps what was recorded.
  void stop();
  Activity activity() const { return m_activity; }
  /// What there is instead of a plan; empty: there is one.
  QString whyNoPlan() const;
  /// Why `run` would start no ranks, so many, whatever their memory; empty: it would, or solves first.
  QString whyNotRun(int ranks) const;
  bool isIdle() const;  ///< neither jobs nor reads nor questions are under way
  /// The trace is still growing.
  bool isLive() const { return m_activity == Activity::Solving && m_trace && m_liveTrace == m_trace; }
  /// Asks to stop, closes all queues, joins for two seconds at most (see Worker::hasLeftBehind).
  void shutdown();

  // Time travel. `seek` is newest-wins; the walks say through `message` what they did not find, and when they began
  // anew.
  StepId stepCount() const;
  StepId wantedStep() const { return m_wantedStep; }
  void seek(StepId step);
  void stepBy(std::int64_t delta);
  void nextConflict() { walkToConflict(true); }
  void previousConflict() { walkToConflict(false); }
  void stepInto();  ///< the next decision (a Try)
  void stepOut();   ///< back to the decision this one hangs on
  void runToBreakpoint(bool forward);
  void toNextChange(NodeId node, bool forward = true);

  // Focus and its history.
  const Focus& focus() const { return m_focus; }
  void focusNode(NodeId node);
  void focusValue(ValueId value);
  void focusScope(ScopeId scope);
  void clearFocus();
  bool canGoBack() const { return m_historyAt > 0; }
  bool canGoForward() const { return m_historyAt + 1 < m_history.size(); }
  void goBack();
  void goForward();
  /// Follows "node:12", "value:linear_3", "scope:model.layers.0", "step:120"; false for anything else.
  bool follow(const QString& target);

  // Demands (each change is undoable and solves again) and breakpoints.
  QUndoStack& undoStack() { return m_undo; }
  const std::vector<solve::Pin>& pins() const { return m_settings.pins; }
  Result<void> addPin(const QString& text);
  void removePin(const QString& text);
  Result<void> setRulesOff(std::vector<std::string> patterns);
  Result<void> setRedistributable(std::vector<std::string> patterns);
  /// To what is shown, which the change was tried on: settings that were touched since, and not solved with, go.
  void applyChange(const solve::Change& change);
  /// Solves again with what was found to fit, captured again where it asks for that.
  void applyFit(const pipeline::Fit& fit);
  /// Sets the budget to what the plan at this point of the front needs; as applyChange.
  void usePoint(const solve::ParetoPoint& point);
  const std::vector<solve::Breakpoint>& breakpoints() const { return m_breakpoints; }
  void addBreakpoint(const solve::Breakpoint& breakpoint);
  void removeBreakpoint(int index);
  void setBreakpointEnabled(int index, bool enabled);
  /// Sets or takes away the breakpoint on this node.
  void toggleBreakpoint(NodeId node);
  bool hasBreakpoint(NodeId node) const;

  // Branches: at most two, A and B. Empty before the first solve has ended.
  const std::vector<Branch>& branches() const { return m_branches; }
  std::size_t shownBranch() const { return m_shownBranch; }
  void showBranch(std::size_t index);
  void dropBranch();  ///< B goes, A is shown
  void keepBranch();  ///< B becomes the only one
  /// From A to B; null with fewer than two plans, while it is computed, and when it failed.
  const std::shared_ptr<const plan::PlanDiff>& planDiff() const { return m_diff; }
  const QString& planDiffFailure() const { return m_diffFailure; }

  // Questions beyond the trace (answers.h has what the answers are).
  const std::shared_ptr<const Analysis>& analysis() const { return m_answers.analysis(); }
  const std::shared_ptr<const WhyNotReply>& whyNot() const { return m_answers.whyNot(); }
  void askWhyNot(ValueId value, const rules::Placement& placement) { m_answers.askWhyNot(value, placement); }
  void askWhyNot(NodeId layer, rules::Strategy strategy) { m_answers.askWhyNot(layer, strategy); }
  /// Sought by itself after a search that met a conflict or left layers whole, and for the conflict at the present
  /// step.
  const std::shared_ptr<const Remedies>& remedies() const { return m_answers.remedies(); }
  const std::shared_ptr<const plan::Preflight>& preflight() const { return m_answers.preflight(); }
  const std::shared_ptr<const WorldSizes>& worldSizes() const { return m_answers.worldSizes(); }
  void computeWorldSizes() { m_answers.computeWorldSizes(); }  ///< 1-64 ranks
  const std::shared_ptr<const Front>& front() const { return m_answers.front(); }
  void computeFront() { m_answers.computeFront(); }
  const std::shared_ptr<const Heat>& heat() const { return m_answers.heat(); }
  void computeHeat() { m_answers.computeHeat(); }
  bool isPending(Question question) const { return m_answers.isPending(question); }

  // Search box.
  Result<std::size_t> search(const QString& text);
  const std::vector<NodeId>& searchHits() const { return m_hits; }
  void walkHits(bool forward);

  std::optional<rules::Placement> placementOf(ValueId value) const;
  std::optional<rules::Strategy> strategyOf(NodeId node) const;
  Worker& reads() { return m_reads; }
  Worker& files() { return m_files; }
  Answers& answers() { return m_answers; }

  // For undo commands and scripts.
  /// What a user demands of a plan; applied as a whole, then solved.
  struct Demands {
    std::vector<solve::Pin> pins;
    std::vector<std::string> rulesOff, redistributable;
    solve::Engine engine = solve::Engine::Reference;
    std::optional<rules::Menu> menu;
    rules::SequenceParallel sequenceParallel = rules::SequenceParallel::Off;
    int ranks = 2;
    solve::CostSettings cost;
    static Demands of(const pipeline::SolveOptions& options);
  };
  Demands demands() const { return Demands::of(m_settings); }
  /// Of the branch that is shown; the settings where nothing was solved.
  const pipeline::SolveOptions& solvedOptions() const;
  void applyDemands(const Demands& demands);
  void applyBreakpoints(std::vector<solve::Breakpoint> breakpoints);

 signals:
  void modelChanged();
  void settingsChanged();
  void traceChanged();
  void traceGrew();
  void planChanged();
  void stepChanged();
  void decisionChanged();
  void focusChanged();
  void revealRequested();  ///< the focus was moved on purpose: bring it into view
  void followRequested();  ///< a step moved the focus: keep it in view, with as little motion as that takes
  void historyChanged();
  void breakpointsChanged();
  void pinsChanged();      ///< also of switched-off rules and redistributions
  void branchesChanged();  ///< also when the diff arrived
  void analysisChanged();
  void whyNotChanged();
  void remediesChanged();
  void preflightChanged();
  void frontChanged();
  void heatChanged();
  void searchChanged();
  void runChanged();  ///< a run started or ended
  void runSampled();  ///< at most 5 times a second while it goes on
  void activityChanged();
  void progressed(const QString& stage, qint64 done, qint64 total);
  /// One sentence for the user. It goes when what it speaks of is no longer what the window shows.
  void message(const QString& text, cleave::views::Severity severity,
               cleave::views::About about = cleave::views::About::Moment);
  void logged(const QString& text);
  /// Ends of work, for scripts: what it was, and whether it succeeded.
  void workEnded(cleave::views::Activity what, bool succeeded, const QString& sentence);

 private:
  struct Reader;
  void setActivity(Activity activity);
  void postOpen(const QString& path, std::function<Worker::Completion(const Progress&)> load);
  // On the worker, which may outlive the document: only what they answer touches it.
  static Worker::Completion loadModel(Document* document, const QString& path,
                                      const torch_capture::CaptureOptions& options,
                                      const pipeline::SolveOptions& settings, std::optional<pipeline::Sample> sample,
                                      bool isBorrowed, const Progress& progress);
  static Worker::Completion loadPlan(Document* document, const QString& path, const Progress& progress);
  void checkOpened(const QString& path);
  static Worker::Completion loadTrace(Document* document, const QString& path, const Progress& progress);
  void takeOpened(const QString& path, const pipeline::SolveOptions& settings,
                  std::shared_ptr<const pipeline::Model> model, bool isBorrowed);
  void recapture(const torch_capture::CaptureOptions& options, const pipeline::SolveOptions& settings);
  void failOpen(const Error& error);
  pipeline::SolveOptions settingsForNewModel() const;
  void takeModel(std::shared_ptr<const pipeline::Model> model);
  void takeLiveTrace(std::shared_ptr<const solve::Trace> trace);
  struct SolveAnswer;
  void takeSolve(const SolveAnswer& answer, const pipeline::SolveOptions& options);
  void showAgain();
  void reportSolve(const SolveAnswer& answer);
  void takeWarnings(Branch& branch);
  void say(const Branch& branch);
  void takeRun(const Result<pipeline::RunReport>& report);
  void takeBranch(Branch branch);
  /// Makes the branch that is shown what every view sees; without one, nothing is.
  void presentBranch();
  void postDiff();
  void pushDemands(const Demands& after, const QString& text);
  Result<void> checkDemand(const std::function<void(solve::Problem&)>& demand) const;
  void seekRemedies();
  void showFirstConflict();
  void showSolution();
  void setTrace(std::shared_ptr<const solve::Trace> trace);
  void postRun(int ranks, launch::Backend backend, bool ignoresMemory);
  std::string deviceFile(const solve::DeviceProfile& profile) const;
  void postFile(const QString& file, const QString& note, std::function<Result<void>(const Progress&)> write);
  void postSeek(StepId step);
  struct Walk;
  void postWalk(Walk walk);
  void walkToConflict(bool forward);
  void takeStep(std::shared_ptr<const StepState> state, std::shared_ptr<const solve::Decision> decision);
  void askForDecision();
  void followConflict();
  void setFocus(const Focus& focus, bool remember);
  void keepPlace(const Focus& focus, bool isJump);
  void revisit(const Focus& focus);
  void endWork(Activity what, bool succeeded, const QString& sentence);

  std::shared_ptr<const pipeline::Model> m_model;
  std::shared_ptr<const pipeline::Solved> m_solved;
  std::shared_ptr<const plan::Plan> m_plan;
  std::shared_ptr<const solve::Trace> m_trace;
  std::shared_ptr<const solve::Trace> m_liveTrace;
  std::shared_ptr<const solve::Trace> m_traceBefore;  ///< shown again when the search that replaced it fails
  std::vector<Branch> m_branches;
  std::size_t m_shownBranch = 0;
  std::shared_ptr<const plan::PlanDiff> m_diff;
  QString m_diffFailure;
  std::shared_ptr<const StepState> m_step;
  std::shared_ptr<const solve::Decision> m_decision;
  StepId m_decidedAt = kNoStep;                           ///< the step that m_decision is of
  std::shared_ptr<std::shared_ptr<Reader>> m_readerSlot;  ///< filled and used by requests on m_reads only
  std::optional<pipeline::Sample> m_sample;
  std::optional<RunState> m_run;
  QString m_source;
  struct DeviceFile {
    solve::DeviceProfile profile;
    std::string file;
  };
  std::vector<DeviceFile> m_deviceFiles;  ///< profiles that came from a file of their own, or from a plan
  torch_capture::CaptureOptions m_capture;
  pipeline::SolveOptions m_settings;
  pipeline::SolveOptions m_ownSettings;            ///< the user's, while a sample, plan or recording has its own
  bool m_isBorrowed = false;                       ///< m_settings came with what is open
  std::shared_ptr<const plan::Plan> m_openedPlan;  ///< from a file, as it stands there
  Activity m_activity = Activity::Idle;
  StepId m_wantedStep = 0;
  bool m_placeIsStep = false;    ///< the present place of the history was reached by single steps
  bool m_stepJumps = false;      ///< the step under way is a jump: Alt+Left leads back
  bool m_followsEnd = true;      ///< until the user moves: a search shows its newest step
  bool m_stepMovesFocus = true;  ///< false while the history goes to a step: it brings its own focus
  std::uint64_t m_solveGeneration = 0;
  Focus m_focus;
  std::vector<Focus> m_history;
  std::size_t m_historyAt = 0;
  std::vector<solve::Breakpoint> m_breakpoints;
  void findHits();
  void findHitsOfStep();
  SearchQuery m_query;
  std::vector<NodeId> m_hits;
  std::size_t m_hitAt = 0;
  QUndoStack m_undo;
  std::optional<std::pair<int, launch::Backend>> m_runAfterSolve;
  QTimer m_growTimer, m_sampleTimer;
  Answers m_answers;
  Worker m_jobs, m_reads, m_files;
};

}  // namespace cleave::views
