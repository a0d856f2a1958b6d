// The session's solves: a search that can be watched, and its result.
#include "pipeline/solve/solve.h"
#include "views/base/text.h"
#include "views/session/session.h"

namespace cleave::views {

namespace {
constexpr int kWatchAfterMs = 200;

QString solvedText(const pipeline::Solved& solved) {
  const solve::SearchStats& stats = solved.result.stats;
  return QStringLiteral("%1, %2, %3 in %4 ms")
      .arg(countedText(stats.tries, "try", "tries"), countedText(stats.conflicts, "conflict"),
           countedText(stats.backtracks, "backtrack"), QString::number(solved.solveMs, 'f', 1));
}

/// The conflicting constraints, if they are known. A frequent dead end may be unrelated to them.
QString noSolutionText(const pipeline::Solved& solved) {
  const auto& core = solved.result.core.constraints;
  const auto& causes = solved.result.causes;
  const QString none = QStringLiteral("%1 (%2)").arg(toQ(solve::noSolutionText(solved.result)), solvedText(solved));
  if (core.empty() && !causes.empty())
    return QStringLiteral("%1. The most frequent dead end: %2").arg(none, prose(causes.front().reason));
  QStringList parts;
  for (const solve::Constraint& constraint : core) parts << prose(constraint.text);
  if (core.size() > 1)
    return QStringLiteral("%1. These constraints conflict. %2").arg(none, parts.join(QLatin1Char(' ')));
  return QStringLiteral("%1: %2").arg(none, core.empty() ? QStringLiteral("all candidates were tried") : parts.front());
}

/// The bar has room for one sentence: the first warning, and a pointer to the others.
QString warningText(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  const QString more =
      warnings.size() > 1 ? QStringLiteral(" (%1 more in the log)").arg(warnings.size() - 1) : QString();
  return prose(warnings.front()) + more;
}
}  // namespace

/// The result of a solve request.
struct Session::Solve {
  Result<std::shared_ptr<const pipeline::Solved>> solved;
  std::optional<Result<std::shared_ptr<const plan::Plan>>> plan;  ///< only with a solution
};

void Session::solve() {
  stopRestoring();
  startSolve();
}

void Session::startSolve() {
  if (!m_opened.model()) return;
  if (m_jobs.activity() == Activity::Running)
    return m_notices.say(QStringLiteral("Ranks are running. Stop them before you solve again."), Severity::Warning,
                         About::Run);
  if (isCapturedOtherwise()) {
    const auto waiting = m_runs.dropWanted();
    recapture(m_opened.input());  // and then solves
    if (waiting) m_runs.runOnceSolved(*waiting);
    return;
  }
  // The trace of a replaced search must not become the trace to return to.
  if (m_jobs.activity() != Activity::Solving) m_traceBefore = m_debugger.trace();
  m_liveTrace.reset();
  m_debugger.endLive();
  m_debugger.followEnd();
  const spec::PlanSpec asked = m_settings.spec();
  pipeline::SolveContext context{.cache = m_settings.cache()};
  const auto generation = ++m_solveGeneration;
  context.onTrace = [this, generation,
                     completionPoster = m_jobs.completionPoster()](std::shared_ptr<const solve::Trace> trace) {
    completionPoster([this, generation, trace = std::move(trace)] {
      if (generation == m_solveGeneration && m_jobs.activity() == Activity::Solving) applyLiveTrace(trace);
    });
  };
  m_notices.log(
      QStringLiteral("Solving for %1 with %2").arg(ranksText(asked.ranks)).arg(toQ(solve::toText(asked.engine))));
  m_jobs.start(Activity::Solving, QStringLiteral("Solving"),
               [this, model = m_opened.model(), asked, context](const Progress& progress) -> Worker::Completion {
                 auto done = std::make_shared<Solve>(Solve{pipeline::solveModel(model, asked, progress, context), {}});
                 if (done->solved && (*done->solved)->result.outcome == solve::Outcome::Solved)
                   done->plan = pipeline::planModel(model, *done->solved, progress);
                 return [this, done, asked] { applySolve(*done, asked); };
               });
}

void Session::applyLiveTrace(std::shared_ptr<const solve::Trace> trace) {
  m_liveTrace = trace;
  // Most searches end quickly. Showing them while they run would only flicker.
  QTimer::singleShot(kWatchAfterMs, this, [this, trace = std::move(trace)] {
    if (m_jobs.activity() == Activity::Solving && m_liveTrace == trace) m_plans.showLive(trace);
  });
}

/// Restores the previous state.
void Session::failSolve(const Error& error) {
  const QString sentence = toQ(error.message);
  m_liveTrace.reset();
  m_runs.dropWanted();
  m_plans.showAgain(std::exchange(m_traceBefore, nullptr));
  m_notices.say(sentence, error.code == ErrorCode::Cancelled ? Severity::Info : Severity::Failure);
  m_jobs.end(Activity::Solving, false, sentence);
}

void Session::applySolve(const Solve& done, const spec::PlanSpec& asked) {
  m_debugger.endLive();
  const auto solved = done.solved ? *done.solved : nullptr;
  const auto trace = solved && solved->trace ? solved->trace : m_liveTrace;
  const bool wasStopped =
      solved ? solved->result.outcome == solve::Outcome::Stopped : done.solved.error().code == ErrorCode::Cancelled;
  if (!solved && !wasStopped) return failSolve(done.solved.error());
  // `optimal` records its trace at the end. If it is stopped before that, the trace contains only the stop.
  if (wasStopped && (!solved || solved->whyStopped.empty()) && (!trace || trace->size() <= 1))
    return failSolve({ErrorCode::Cancelled, toStd(QStringLiteral("The search was stopped before it found a plan."))});
  const auto plan = done.plan && *done.plan ? **done.plan : nullptr;
  m_liveTrace.reset();
  m_traceBefore.reset();
  m_jobs.settle(Activity::Solving);
  m_plans.take({{}, {}, asked, solved, plan, trace});
  m_debugger.reportGrowth();
  if (m_debugger.followsEnd() && trace) {
    const bool hasSolution = solved && solved->result.outcome == solve::Outcome::Solved;
    const bool stopped = !solved || solved->result.outcome == solve::Outcome::Stopped;
    if ((hasSolution && !m_plans.isAboutConflicts()) || stopped)
      m_debugger.seek(trace->size());
    else
      m_debugger.showFirstConflict();
  } else if (trace) {
    m_debugger.seek(m_debugger.wantedStep());
  }
  reportSolve(done);
}

void Session::reportSolve(const Solve& done) {
  const auto& solved = m_plans.solved();
  Severity severity = Severity::Info;
  QString sentence, said;
  if (!solved || solved->result.outcome == solve::Outcome::Stopped) {
    sentence = QStringLiteral("The search was stopped after %1. The recorded steps are shown.")
                   .arg(countedText(m_debugger.stepCount(), "event"));
    if (solved && !solved->whyStopped.empty()) sentence += QLatin1Char(' ') + prose(solved->whyStopped);
    said = sentence;
  } else if (solved->result.outcome == solve::Outcome::NoSolution) {
    said = sentence = noSolutionText(*solved);
    severity = Severity::Warning;
  } else if (done.plan && !*done.plan) {
    said = sentence = toQ(done.plan->error().message);
    severity = done.plan->error().code == ErrorCode::Cancelled ? Severity::Info : Severity::Failure;
  } else {
    sentence = QStringLiteral("Solved for %1: %2").arg(ranksText(solved->spec.ranks)).arg(solvedText(*solved));
    const auto& warnings = m_plans.plan()->warnings;
    for (const std::string& warning : warnings) m_notices.log(prose(warning));
    said = warningText(warnings);
    if (!said.isEmpty()) severity = Severity::Warning;
  }
  m_plans.say(said, severity);
  m_jobs.end(Activity::Solving, severity != Severity::Failure, sentence);
  m_runs.goOnAfterSolve(sentence);
}

}  // namespace cleave::views
