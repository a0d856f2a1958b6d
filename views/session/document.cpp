#include "views/session/document.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

#include "pipeline/folder_check.h"
#include "views/base/save_file.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kRefreshMs = 200;
constexpr auto kShutdownLimit = std::chrono::seconds(2);
const QString kSolveTag = QStringLiteral("solve"), kRunTag = QStringLiteral("run");

/// How a run came out in which no rank failed.
QString ranText(const pipeline::RunReport& report, int ranks) {
  const QString who = ranksText(ranks);
  const QString what = toQ(report.comparedWith);
  if (report.verdict == pipeline::RunVerdict::Passed) return QObject::tr("%1 computed the same as %2.").arg(who, what);
  if (report.verdict == pipeline::RunVerdict::NotChecked)
    return QObject::tr("%1 ran to the end; what they computed was compared with nothing.").arg(who);
  if (!report.violations.empty()) return toQ(report.violations.front());
  const bool hasNoNumbers = std::any_of(report.outputs.begin(), report.outputs.end(),
                                        [](const pipeline::OutputDifference& output) { return output.notANumber > 0; });
  if (hasNoNumbers)
    return QObject::tr("%1 computed the outputs, and some elements here or of %2 are no numbers: nothing equals them.")
        .arg(who, what);
  return QObject::tr("%1 computed something else than %2.").arg(who, what);
}

/// What running a plan here asks for; where, and whether memory counts, is the user's to say.
pipeline::RunRequest requestFor(std::shared_ptr<const plan::Plan> plan) {
  pipeline::RunRequest request;
  request.skipWeights = !plan->model.hasWeights;
  request.rtol = request.atol = pipeline::defaultTolerance(plan->model.dtype);
  request.plan = std::move(plan);
  return request;
}

QString solvedText(const pipeline::Solved& solved) {
  const solve::SearchStats& stats = solved.result.stats;
  return QStringLiteral("%1, %2, %3 in %4 ms")
      .arg(countedText(stats.tries, "try", "tries"), countedText(stats.conflicts, "conflict"),
           countedText(stats.backtracks, "backtrack"), QString::number(solved.solveMs, 'f', 1));
}

/// What became of a recorded search, by its last event.
QString endText(const solve::Trace& trace) {
  solve::Event last;
  const bool isEmpty = trace.size() == 0 || trace.read(trace.size() - 1, {&last, 1}) == 0;
  if (!isEmpty && last.type == solve::EventType::Ended)
    return QObject::tr("and no plan: it ended at its limit before it found one.");
  if (!isEmpty && last.type == solve::EventType::Exhausted) return QObject::tr("and it found no plan.");
  if (!isEmpty && last.type == solve::EventType::Solution) return QObject::tr("and no plan. Solve makes one.");
  return QObject::tr("and no plan: it was stopped before it found one.");
}

/// What cannot hold together, where that is known; a dead end that the search met often may have no part in it.
QString noSolutionText(const pipeline::Solved& solved) {
  const auto& core = solved.result.core.constraints;
  const auto& causes = solved.result.causes;
  const QString none = QStringLiteral("%1 (%2)").arg(toQ(solve::noSolutionText(solved.result)), solvedText(solved));
  if (core.empty() && !causes.empty())
    return QObject::tr("%1. The dead end met most often: %2").arg(none, prose(causes.front().reason));
  QStringList parts;
  for (const solve::Constraint& constraint : core) parts << prose(constraint.text);
  const QString why = core.empty() ? QObject::tr("every candidate was tried")
                      : core.size() == 1
                          ? parts.front()
                          : QObject::tr("these cannot hold together: %1").arg(parts.join(QLatin1Char(' ')));
  return QStringLiteral("%1: %2").arg(none, why);
}
}  // namespace

/// What the solving request brings back.
struct Document::SolveAnswer {
  Result<std::shared_ptr<const pipeline::Solved>> solved;
  std::optional<Result<std::shared_ptr<const plan::Plan>>> plan;  ///< only with a solution
};

Document::Document(QObject* parent) : QObject(parent), m_answers(this), m_jobs(this), m_reads(this), m_files(this) {
  // Without resources the generic profile stays, which is good enough to open a trace with.
  if (auto profile = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice)))
    m_settings.cost.profile = std::move(*profile);
  m_growTimer.setInterval(kRefreshMs);
  m_sampleTimer.setInterval(kRefreshMs);
  connect(&m_growTimer, &QTimer::timeout, this, [this] {
    if (!isLive()) return;
    emit traceGrew();
    if (m_followsEnd) postSeek(m_trace->size());
  });
  connect(&m_sampleTimer, &QTimer::timeout, this, &Document::runSampled);
  connect(this, &Document::stepChanged, this, &Document::findHitsOfStep);
  connect(&m_jobs, &Worker::progressed, this, [this](const QString&, const QString& stage, qint64 done, qint64 total) {
    emit progressed(stage, done, total);
  });
  connect(&m_answers, &Answers::analysisChanged, this, &Document::analysisChanged);
  connect(&m_answers, &Answers::whyNotChanged, this, &Document::whyNotChanged);
  connect(&m_answers, &Answers::remediesChanged, this, &Document::remediesChanged);
  connect(&m_answers, &Answers::preflightChanged, this, &Document::preflightChanged);
  connect(&m_answers, &Answers::frontChanged, this, &Document::frontChanged);
  connect(&m_answers, &Answers::heatChanged, this, &Document::heatChanged);
  for (const auto signal : {&Document::settingsChanged, &Document::pinsChanged})
    connect(this, signal, this, [this] { m_answers.setOptions(m_settings); });
}

Document::~Document() { shutdown(); }

void Document::shutdown() {
  m_growTimer.stop();
  m_sampleTimer.stop();
  // All are asked first, so that their time to end runs together.
  for (Worker* worker : {&m_jobs, &m_reads, &m_files}) worker->close();
  m_answers.close();
  const auto until = Worker::Clock::now() + kShutdownLimit;
  for (Worker* worker : {&m_jobs, &m_reads, &m_files}) worker->join(until);
  m_answers.join(until);
}

QString Document::title() const {
  // A sample's title tells of its settings.
  if (m_sample && m_sample->solve.ranks == m_settings.ranks) return toQ(m_sample->title);
  if (m_source.isEmpty()) return {};
  const QFileInfo info(QDir::cleanPath(m_source));
  return info.fileName().isEmpty() ? m_source : info.fileName();
}

void Document::setActivity(Activity activity) {
  if (m_activity == activity) return;
  m_activity = activity;
  emit activityChanged();
}

bool Document::isIdle() const {
  return m_activity == Activity::Idle && !m_jobs.isBusy() && !m_reads.isBusy() && !m_files.isBusy() &&
         m_answers.isIdle();
}

void Document::endWork(Activity what, bool succeeded, const QString& sentence) {
  if (m_activity == what) setActivity(Activity::Idle);
  if (!sentence.isEmpty()) emit logged(sentence);
  emit workEnded(what, succeeded, sentence);
}

void Document::takeModel(std::shared_ptr<const pipeline::Model> model) {
  m_model = std::move(model);
  m_solved.reset();
  m_plan.reset();
  m_branches.clear();
  m_shownBranch = 0;
  postDiff();
  m_liveTrace.reset();
  m_run.reset();
  m_hits.clear();
  m_query = {};
  m_undo.clear();
  m_breakpoints.clear();
  m_history.clear();
  m_historyAt = 0;
  m_focus = {};
  setTrace(nullptr);
  m_answers.setModel(m_model, m_settings);
  emit modelChanged();
  emit settingsChanged();
  emit pinsChanged();
  emit breakpointsChanged();
  emit planChanged();
  emit branchesChanged();
  emit focusChanged();
  emit historyChanged();
  emit searchChanged();
  emit runChanged();
  emit logged(QStringLiteral("%1: %2, captured in %3 ms, decomposed in %4 ms")
                  .arg(title(), countedText(m_model->aten->nodes.size(), "operator"),
                       QString::number(m_model->timings.captureMs, 'f', 1),
                       QString::number(m_model->timings.decomposeMs, 'f', 1)));
}

void Document::solve() {
  if (!m_model) return;
  if (m_activity == Activity::Running) {
    emit message(tr("Ranks are running: stop them before solving again."), Severity::Warning, About::Run);
    return;
  }
  // A search that replaces a running one must not be mistaken for the trace to go back to.
  if (m_activity != Activity::Solving) m_traceBefore = m_trace;
  m_liveTrace.reset();
  m_followsEnd = true;
  pipeline::SolveOptions options = m_settings;
  const auto generation = ++m_solveGeneration;
  options.onTrace = [this, generation, courier = m_jobs.courier()](std::shared_ptr<const solve::Trace> trace) {
    courier([this, generation, trace = std::move(trace)] {
      if (generation == m_solveGeneration && m_activity == Activity::Solving) takeLiveTrace(trace);
    });
  };
  emit logged(
      QStringLiteral("Solving for %1 with %2").arg(ranksText(options.ranks)).arg(toQ(solve::toText(options.engine))));
  m_jobs.post(
      kSolveTag, tr("Solving"), [this, model = m_model, options](const Progress& progress) -> Worker::Completion {
        auto answer = std::make_shared<SolveAnswer>(SolveAnswer{pipeline::solveModel(model, options, progress), {}});
        if (answer->solved && (*answer->solved)->result.outcome == solve::Outcome::Solved)
          answer->plan = pipeline::planModel(model, *answer->solved);
        return [this, answer, options] { takeSolve(*answer, options); };
      });
  setActivity(Activity::Solving);
}

void Document::takeLiveTrace(std::shared_ptr<const solve::Trace> trace) {
  m_liveTrace = trace;
  // Most searches end before anyone could look: showing them half-way would only flicker.
  QTimer::singleShot(kRefreshMs, this, [this, trace = std::move(trace)] {
    if (m_activity != Activity::Solving || m_liveTrace != trace) return;
    m_solved.reset();
    m_plan.reset();
    m_answers.setSolved(nullptr);
    setTrace(trace);
    emit planChanged();
    m_growTimer.start();
    postSeek(trace->size());
  });
}

void Document::takeSolve(const SolveAnswer& answer, const pipeline::SolveOptions& options) {
  m_growTimer.stop();
  const bool wasStopped = !answer.solved && answer.solved.error().code == ErrorCode::Cancelled;
  if (!answer.solved && !(wasStopped && m_liveTrace)) {
    const QString sentence = toQ(answer.solved.error().message);
    m_liveTrace.reset();
    m_runAfterSolve.reset();
    showAgain();
    emit message(sentence, Severity::Failure);
    endWork(Activity::Solving, false, sentence);
    return;
  }
  const auto solved = answer.solved ? *answer.solved : nullptr;
  const auto trace = solved && solved->trace ? solved->trace : m_liveTrace;
  const auto plan = answer.plan && *answer.plan ? **answer.plan : nullptr;
  m_liveTrace.reset();
  m_traceBefore.reset();
  if (m_activity == Activity::Solving) setActivity(Activity::Idle);
  takeBranch({{}, {}, options, solved, plan, trace});
  emit traceGrew();
  if (m_followsEnd && trace) {
    const bool hasSolution = solved && solved->result.outcome == solve::Outcome::Solved;
    const bool stopped = !solved || solved->result.outcome == solve::Outcome::Stopped;
    if ((hasSolution && !isAboutConflicts()) || stopped)
      seek(trace->size());
    else
      showFirstConflict();
  } else if (trace) {
    seek(m_wantedStep);
  }
  reportSolve(answer);
}

bool Document::isAboutConflicts() const {
  return m_sample && m_branches.size() == 1 && m_solved && m_solved->result.stats.conflicts > 0;
}

/// What was there before a search that came to nothing.
void Document::showAgain() {
  const auto trace = std::exchange(m_traceBefore, nullptr);
  if (m_trace == trace) return;
  if (m_branches.empty())
    setTrace(trace);
  else
    presentBranch();
  seek(stepCount());
}

void Document::reportSolve(const SolveAnswer& answer) {
  Branch& branch = m_branches[m_shownBranch];
  const auto& solved = branch.solved;
  bool succeeded = true;
  QString sentence;
  if (!solved || solved->result.outcome == solve::Outcome::Stopped) {
    sentence = tr("The search was stopped after %1: what was recorded is here to look at.")
                   .arg(countedText(stepCount(), "event"));
    if (solved && !solved->whyStopped.empty()) sentence += QLatin1Char(' ') + prose(solved->whyStopped);
    branch.said = sentence;
  } else if (solved->result.outcome == solve::Outcome::NoSolution) {
    sentence = noSolutionText(*solved);
    branch.said = sentence;
    branch.severity = Severity::Warning;
  } else if (answer.plan && !*answer.plan) {
    sentence = toQ(answer.plan->error().message);
    succeeded = false;
    branch.said = sentence;
    branch.severity = Severity::Failure;
  } else {
    sentence = tr("Solved for %1: %2").arg(ranksText(solved->options.ranks)).arg(solvedText(*solved));
    takeWarnings(branch);
  }
  say(branch);
  const auto thenRun = std::exchange(m_runAfterSolve, std::nullopt);
  endWork(Activity::Solving, succeeded, sentence);
  if (!thenRun) return;
  if (m_plan)
    postRun(thenRun->first, thenRun->second, false);
  else
    endWork(Activity::Running, false, tr("There is no plan to run: %1").arg(sentence));
}

/// One bar holds one sentence: the first warning, and where the others stand.
void Document::takeWarnings(Branch& branch) {
  const auto& warnings = branch.plan->warnings;
  for (const std::string& warning : warnings) emit logged(prose(warning));
  if (warnings.empty()) return;
  const QString more = warnings.size() > 1 ? tr(" (%1 more in the log)").arg(warnings.size() - 1) : QString();
  branch.said = prose(warnings.front()) + more;
  branch.severity = Severity::Warning;
}

void Document::say(const Branch& branch) { emit message(branch.said, branch.severity, About::Plan); }

QString Document::whyNoPlan() const {
  if (m_plan) return {};
  if (m_activity == Activity::Solving) return tr("Making a plan …");
  if (m_branches.empty() && m_trace) {
    const auto engine = m_trace->engine();
    const QString by = engine ? tr("engine %1").arg(toQ(solve::toText(*engine))) : tr("its engine is not in the file");
    return tr("A recorded search for %1 (%2): its steps are here, %3")
        .arg(ranksText(m_trace->problem()->context.worldSize), by, endText(*m_trace));
  }
  if (m_branches.empty()) return tr("There is no plan yet.");
  const auto& branch = m_branches[m_shownBranch];
  if (branch.solved && !branch.solved->whyStopped.empty())
    return tr("There is no plan: the search ended before it found one. %1").arg(toQ(branch.solved->whyStopped));
  if (!branch.solved || branch.solved->result.outcome == solve::Outcome::Stopped)
    return tr("There is no plan: the search was stopped before it found one.");
  if (branch.solved->result.outcome != solve::Outcome::NoSolution) return tr("There is no plan: %1").arg(branch.said);
  return branch.solved->result.isProved ? tr("There is no plan: the conflict card says why, and what helps.")
                                        : tr("No plan was found: the conflict card says why, and what helps.");
}

QString Document::whyNotRun(int ranks) const {
  const bool hasNoSolution = m_solved && m_solved->result.outcome != solve::Outcome::Solved;
  if (hasNoSolution && m_solved->options.ranks == ranks && !isOutdated()) return whyNoPlan();
  if (m_plan && !m_plan->model.source.empty()) {
    const auto folder = pipeline::checkFolder(requestFor(m_plan));
    if (!folder.holds()) return tr("%1 Put it back, and open it again.").arg(toQ(folder.text));
  }
  // Without its model, all that can be run is the plan that names the weights.
  const bool isAsOpened = m_plan && m_plan == m_openedPlan && m_plan->ranks == ranks;
  if (isAsOpened || !m_model->folder.path.empty()) return {};
  return m_openedPlan
             ? tr("The plan stands here without its model, so only itself can be run, on %1: open its model folder for "
                  "another plan.")
                   .arg(ranksText(m_openedPlan->ranks))
             : tr("A recorded search has no weights, so it cannot be run: open its model folder and solve it.");
}

void Document::run(int ranks, launch::Backend backend, bool ignoresMemory) {
  if (!m_model || m_activity == Activity::Running) return;
  if (const QString why = whyNotRun(ranks); !why.isEmpty()) {
    emit message(why, Severity::Failure);
    return endWork(Activity::Running, false, why);
  }
  if (m_plan && m_plan->ranks == ranks && m_activity == Activity::Idle) return postRun(ranks, backend, ignoresMemory);
  m_runAfterSolve = {ranks, backend};
  setRanks(ranks);
  solve();
}

void Document::postRun(int ranks, launch::Backend backend, bool ignoresMemory) {
  auto monitor = std::make_shared<RunMonitor>(ranks);
  m_run = RunState{ranks, backend, m_plan, monitor, std::nullopt, {}, true};
  pipeline::RunRequest request = requestFor(m_plan);
  request.backend = backend;
  request.ignoreMemory = ignoresMemory;
  emit logged(tr("Starting %1").arg(ranksText(ranks)));
  m_jobs.post(kRunTag, tr("Running on %1").arg(ranksText(ranks)),
              [this, request, monitor](const Progress& progress) -> Worker::Completion {
                auto report = pipeline::runPlan(
                    request, [monitor](const launch::RankEvent& event) { monitor->apply(event); }, progress);
                monitor->finish(report ? &report->outcome : nullptr);
                return [this, report = std::move(report)]() { takeRun(report); };
              });
  setActivity(Activity::Running);
  m_sampleTimer.start();
  emit runChanged();
}

const RunState* Document::runState() const {
  return m_run && (m_run->isActive || m_run->plan == m_plan) ? &*m_run : nullptr;
}

void Document::takeRun(const Result<pipeline::RunReport>& report) {
  m_sampleTimer.stop();
  m_run->isActive = false;
  QString sentence;
  Severity severity = Severity::Failure;
  if (report) {
    m_run->report = *report;
    m_run->backend = report->backend;
    const auto& failure = report->outcome.firstFailure;
    if (failure) {
      sentence = tr("Rank %1 %2").arg(failure->rank).arg(toQ(failure->what));
      if (!failure->lastWords.empty())
        sentence += QStringLiteral(": ") + toQ(failure->lastWords).trimmed().section(QLatin1Char('\n'), -1);
    } else {
      severity = report->verdict == pipeline::RunVerdict::Failed ? Severity::Warning : Severity::Good;
      sentence = ranText(*report, m_run->ranks);
    }
  } else {
    sentence = toQ(report.error().message);
    if (report.error().code == ErrorCode::Cancelled) severity = Severity::Info;
    m_run->failure = sentence;
  }
  emit runSampled();
  emit runChanged();
  if (runState()) emit message(sentence, severity, About::Run);  // else another plan is shown: the log has it
  endWork(Activity::Running, report && report->verdict != pipeline::RunVerdict::Failed, sentence);
}

void Document::saveTrace(const QString& file) {
  if (!m_trace) return;
  postFile(file, {}, [file, trace = m_trace](const Progress& progress) {
    return solve::saveTrace(*trace, toStd(file), progress);
  });
}

void Document::save(const QString& file, std::function<QByteArray()> make, const QString& note) {
  postFile(file, note,
           [file, make = std::move(make)](const Progress& progress) { return saveFile(file, make(), progress); });
}

void Document::postFile(const QString& file, const QString& note, std::function<Result<void>(const Progress&)> write) {
  m_files.post(file, tr("Writing %1").arg(file), [=, this](const Progress& progress) -> Worker::Completion {
    auto written = checkIsFile(file);
    if (written) written = write(progress);
    return [=, this] {
      if (written)
        emit message(tr("Written to %1. %2").arg(file, note).trimmed(), Severity::Good);
      else
        emit message(toQ(written.error().message), Severity::Failure);
    };
  });
}

void Document::stop() {
  m_runAfterSolve.reset();
  m_jobs.cancelAll();
  m_reads.cancelAll();
  m_files.cancelAll();
  m_answers.cancel();
}

}  // namespace cleave::views
