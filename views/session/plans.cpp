#include "views/session/plans.h"

#include <algorithm>

#include "pipeline/solve/solve.h"
#include "pipeline/source/open.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::size_t kBase = 0, kChanged = 1;

std::vector<QString> pinTexts(const spec::PlanSpec& spec) {
  std::vector<QString> texts;
  for (const solve::Pin& pin : spec.pins) texts.push_back(toQ(pin.text));
  return texts;
}

template <class List, class Write>
void addListChanges(QStringList& parts, const List& before, const List& after, const Write& write) {
  for (const auto& entry : after)
    if (std::find(before.begin(), before.end(), entry) == before.end()) parts << write(entry, true);
  for (const auto& entry : before)
    if (std::find(after.begin(), after.end(), entry) == after.end()) parts << write(entry, false);
}

/// What changed from the first solve to the second: "4 ranks, lm_head=row".
QString changeText(const spec::PlanSpec& before, const spec::PlanSpec& after) {
  QStringList parts;
  if (before.engine != after.engine) parts << toQ(solve::toText(after.engine));
  if (before.ranks != after.ranks) parts << ranksText(after.ranks);
  if (before.candidates() != after.candidates())
    parts << (after.candidates() == rules::CandidateSet::Full ? QStringLiteral("full candidate set")
                                                              : QStringLiteral("reference's candidate set"));
  if (before.sequenceParallel != after.sequenceParallel)
    parts << QStringLiteral("sequence parallel %1").arg(toQ(rules::toText(after.sequenceParallel)));
  QStringList pins;
  addListChanges(pins, pinTexts(before), pinTexts(after),
                 [](const QString& pin, bool isNew) { return isNew ? pin : QStringLiteral("without %1").arg(pin); });
  constexpr qsizetype kMostPins = 4;
  parts << (pins.size() > kMostPins ? QStringList{QStringLiteral("%1 pins changed").arg(pins.size())} : pins);
  addListChanges(parts, before.rulesOff, after.rulesOff, [](const std::string& rule, bool isNew) {
    return isNew ? QStringLiteral("%1 off").arg(toQ(rule)) : QStringLiteral("%1 on").arg(toQ(rule));
  });
  addListChanges(parts, before.redistributable, after.redistributable, [](const std::string& value, bool isNew) {
    return isNew ? QStringLiteral("%1 may be redistributed").arg(toQ(value))
                 : QStringLiteral("%1 is not redistributed").arg(toQ(value));
  });
  const solve::CostSettings &was = before.cost, &is = after.cost;
  if (was.profile != is.profile)
    parts << (was.profile.name != is.profile.name ? toQ(is.profile.name)
                                                  : QStringLiteral("%1 with other rates").arg(toQ(is.profile.name)));
  if (was.isTraining != is.isTraining)
    parts << (is.isTraining ? QStringLiteral("training") : QStringLiteral("inference"));
  if (is.isTraining && was.optimizer != is.optimizer) parts << toQ(solve::toText(is.optimizer));
  if (is.isTraining && was.checkpointsActivations != is.checkpointsActivations)
    parts << (is.checkpointsActivations ? QStringLiteral("checkpoints") : QStringLiteral("no checkpoints"));
  if (was.slackPercent != is.slackPercent)
    parts << QStringLiteral("slack %1").arg(toQ(solve::slackText(is.slackPercent)));
  if (was.memoryBudget != is.memoryBudget)
    parts << (is.memoryBudget ? QStringLiteral("budget %1").arg(bytesText(*is.memoryBudget))
                              : QStringLiteral("device memory as budget"));
  return parts.join(QStringLiteral(", "));
}

QString settingsText(const spec::PlanSpec& spec) {
  return QStringLiteral("%1, %2").arg(toQ(solve::toText(spec.engine)), ranksText(spec.ranks));
}
/// The end of a recorded search, by its last event.
QString endText(const solve::Trace& trace) {
  solve::Event last;
  const bool isEmpty = trace.size() == 0 || trace.read(trace.size() - 1, {&last, 1}) == 0;
  if (!isEmpty && last.type == solve::EventType::Ended)
    return QStringLiteral("without a plan: the search stopped at its limit.");
  if (!isEmpty && last.type == solve::EventType::Exhausted)
    return QStringLiteral("without a plan: the search found no solution.");
  if (!isEmpty && last.type == solve::EventType::Solution) return QStringLiteral("without a plan. Solve to make one.");
  return QStringLiteral("without a plan: the search was stopped.");
}
}  // namespace

Plans::Plans(const OpenedModel& opened, Settings& settings, const Jobs& jobs, Debugger& debugger, Notices& notices,
             QObject* parent)
    : QObject(parent), m_opened(opened), m_settings(settings), m_jobs(jobs), m_debugger(debugger), m_notices(notices) {}

bool Plans::isOutdated() const {
  return !m_branches.empty() && !spec::isSameProblem(m_branches[m_shownBranch].spec, m_settings.spec());
}

void Plans::take(Branch branch) {
  const bool isBase = m_branches.empty() || spec::isSameProblem(m_branches[kBase].spec, branch.spec);
  if (isBase) {
    branch.name = QStringLiteral("A");
    branch.label = settingsText(branch.spec);
    m_branches = {std::move(branch)};
    m_shownBranch = kBase;
  } else {
    branch.name = QStringLiteral("B");
    branch.label = m_nextName.isEmpty() ? changeText(m_branches[kBase].spec, branch.spec)
                                        : QStringLiteral("%1, %2").arg(m_nextName, ranksText(branch.spec.ranks));
    m_branches.resize(kChanged);
    m_branches.push_back(std::move(branch));
    m_shownBranch = kChanged;
  }
  m_nextName.clear();
  present();
  postDiff();
  emit branchesChanged();
}

/// Makes all views show this branch. Without a branch they are empty.
void Plans::present() {
  const Branch shown = m_branches.empty() ? Branch{} : m_branches[m_shownBranch];
  m_solved = shown.solved;
  m_plan = shown.plan;
  m_debugger.show(shown.trace, shown.solved);
  emit planChanged();
}

void Plans::showLive(std::shared_ptr<const solve::Trace> trace) {
  m_solved.reset();
  m_plan.reset();
  m_debugger.showLive(std::move(trace));
  emit planChanged();
}

void Plans::showAgain(std::shared_ptr<const solve::Trace> before) {
  if (m_debugger.trace() == before) return;
  if (m_branches.empty())
    m_debugger.show(std::move(before), nullptr);
  else
    present();
  m_debugger.seek(m_debugger.stepCount());
}

void Plans::say(const QString& text, Severity severity) {
  Branch& branch = m_branches[m_shownBranch];
  branch.said = text;
  branch.severity = severity;
  m_notices.say(text, severity, About::Plan);
}

void Plans::applyOpened(const std::shared_ptr<const plan::Plan>& plan, const QString& whyNotRun) {
  m_openedPlan = plan;
  m_whyOpenedCannotRun = whyNotRun;
}

void Plans::forget() {
  m_solved.reset();
  m_plan.reset();
  m_openedPlan.reset();
  m_whyOpenedCannotRun.clear();
  m_branches.clear();
  m_shownBranch = 0;
  m_nextName.clear();
  postDiff();
}

void Plans::announce() {
  emit planChanged();
  emit branchesChanged();
}

void Plans::showBranch(std::size_t index) {
  if (index >= m_branches.size() || index == m_shownBranch) return;
  if (m_jobs.activity() == Activity::Solving) {
    m_notices.say(QStringLiteral("A search is running. Stop it, or wait, before you look at another plan."),
                  Severity::Info);
    return;
  }
  m_shownBranch = index;
  m_settings.show(m_branches[index].spec);
  present();
  emit branchesChanged();
  m_debugger.seek(m_debugger.stepCount());
  m_notices.say(m_branches[index].said, m_branches[index].severity, About::Plan);
}

void Plans::dropBranch() {
  if (m_branches.size() < 2 || m_jobs.activity() == Activity::Solving) return;
  showBranch(kBase);
  m_branches.resize(kChanged);
  postDiff();
  emit branchesChanged();
}

void Plans::keepBranch() {
  if (m_branches.size() < 2 || m_jobs.activity() == Activity::Solving) return;
  showBranch(kChanged);
  m_branches.erase(m_branches.begin());
  m_shownBranch = kBase;
  m_branches.front().name = QStringLiteral("A");
  m_branches.front().label = settingsText(m_branches.front().spec);
  postDiff();
  emit branchesChanged();
}

void Plans::postDiff() {
  m_diff.reset();
  m_diffFailure.clear();
  if (m_branches.size() < 2) {
    m_debugger.reads().post(QStringLiteral("diff"), {},
                            [](const Progress&) { return nullptr; });  // replaces a running diff
    return;
  }
  const auto before = m_branches[kBase].plan, after = m_branches[kChanged].plan;
  if (!before || !after) {
    m_diffFailure =
        QStringLiteral("Branch %1 has no plan to compare with.").arg(m_branches[before ? kChanged : kBase].name);
    return;
  }
  m_debugger.reads().post(QStringLiteral("diff"), {}, [this, before, after](const Progress&) -> Worker::Completion {
    auto found = plan::diff(*before, *after);
    return [=, this, found = std::move(found)] {
      if (m_branches.size() < 2 || m_branches[kChanged].plan != after) return;
      if (found)
        m_diff = std::make_shared<const plan::PlanDiff>(*found);
      else
        m_diffFailure = toQ(found.error().message);
      emit branchesChanged();
    };
  });
}

bool Plans::isAboutConflicts() const {
  return m_opened.sample() && m_branches.size() == 1 && m_solved && m_solved->result.stats.conflicts > 0;
}

bool Plans::isWorthRemedies() const {
  if (!m_solved) return false;
  const solve::SolveResult& result = m_solved->result;
  const auto isWhole = [](const std::optional<rules::LayerStrategy>& option) {
    return option && option->strategy == rules::Strategy::Replicated;
  };
  const bool hasWhole =
      result.solution && std::any_of(result.solution->strategies.begin(), result.solution->strategies.end(), isWhole);
  return result.outcome == solve::Outcome::NoSolution || result.stats.conflicts > 0 || hasWhole;
}

QString Plans::recordedText(const solve::Trace& trace) const {
  const auto engine = trace.engine();
  const QString by =
      engine ? QStringLiteral("engine %1").arg(toQ(solve::toText(*engine))) : QStringLiteral("engine unknown");
  return QStringLiteral("This is a recorded search for %1 (%2), %3")
      .arg(ranksText(trace.problem()->context.worldSize), by, endText(trace));
}

QString Plans::whyNone() const {
  if (m_plan) return {};
  if (m_jobs.activity() == Activity::Solving) return QStringLiteral("Solving …");
  if (m_branches.empty())
    return m_debugger.trace() ? recordedText(*m_debugger.trace()) : QStringLiteral("There is no plan yet.");
  const auto& branch = m_branches[m_shownBranch];
  if (branch.solved && !branch.solved->whyStopped.empty())
    return QStringLiteral("No plan: the search ended before it found one. %1").arg(toQ(branch.solved->whyStopped));
  if (!branch.solved || branch.solved->result.outcome == solve::Outcome::Stopped)
    return QStringLiteral("No plan: the search was stopped before it found one.");
  if (branch.solved->result.outcome != solve::Outcome::NoSolution)
    return QStringLiteral("No plan: %1").arg(branch.said);
  return branch.solved->result.isProved
             ? QStringLiteral("There is no plan. The conflict card shows the reason and the remedies.")
             : QStringLiteral("No plan was found. The conflict card shows the reason and the remedies.");
}

const spec::PlanSpec& Plans::spec() const {
  return m_branches.empty() ? m_settings.spec() : m_branches[m_shownBranch].spec;
}

void Plans::applyChange(const solve::Change& change) {
  if (!m_opened.model()) return;
  const auto problem = pipeline::problemOf(*m_opened.model(), spec());
  const auto changed = problem ? solve::applied(**problem, change) : tl::unexpected<Error>(problem.error());
  if (!changed) return m_notices.say(toQ(changed.error().message), Severity::Failure);
  spec::PlanSpec after = spec();
  after.pins = changed->pins;
  after.rulesOff = changed->rulesOff;
  after.redistributable = changed->redistributable;
  after.sequenceParallel = changed->context.sequenceParallel;
  after.ranks = changed->context.worldSize;
  after.cost.memoryBudget = changed->cost.memoryBudget;
  // A candidate set of "the engine's own" stays so unless the change sets it.
  if (changed->context.candidateSet != (*problem)->context.candidateSet)
    after.candidateSet = changed->context.candidateSet;
  m_settings.demand(after, toQ(solve::toText(change)));
}

void Plans::applyFit(const pipeline::Fit& fit) {
  if (!m_opened.model()) return;
  if (fit.input == m_opened.model()->info.input) return m_settings.demand(fit.spec, toQ(fit.change));
  emit recaptureWanted(fit.input, fit.spec);
}

void Plans::usePoint(const solve::ParetoPoint& point) {
  spec::PlanSpec after = spec();
  after.engine = solve::Engine::Optimal;  // the only engine that uses the budget
  after.cost.memoryBudget = point.bytes;
  after.cost.slackPercent = 0;  // exactly that point, not another one with less memory
  m_settings.demand(after, QStringLiteral("budget of %1").arg(bytesText(point.bytes)));
}

}  // namespace cleave::views
