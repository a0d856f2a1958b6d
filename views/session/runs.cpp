#include "views/session/runs.h"

#include <algorithm>

#include "graph/gradients.h"
#include "pipeline/memory/rank_memory.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/run.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/settings/run_settings.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kSampleMs = 200;

/// The result of a run without a failed rank.
QString ranText(const pipeline::RunReport& report, int ranks) {
  const QString who = ranksText(ranks);
  const bool isTraining = report.spec.training.isAsked();
  const QString what = toQ(report.comparedWith);
  if (report.verdict == pipeline::RunVerdict::Passed)
    return isTraining ? QStringLiteral("%1 trained %2 and match %3.")
                            .arg(who, countedText(static_cast<std::uint64_t>(report.spec.training.steps), "step"), what)
                      : QStringLiteral("%1 computed the same results as %2.").arg(who, what);
  if (report.verdict == pipeline::RunVerdict::NotChecked)
    return QStringLiteral("%1 finished. Their results were not compared.").arg(who);
  if (!report.violations.empty()) return toQ(report.violations.front());
  const bool hasNoNumbers = std::any_of(report.outputs.begin(), report.outputs.end(),
                                        [](const pipeline::OutputDifference& output) { return output.notANumber > 0; });
  if (hasNoNumbers)
    return QStringLiteral("%1 computed the outputs, but some elements here or in %2 are NaN and cannot be compared.")
        .arg(who, what);
  return QStringLiteral("%1 computed results that differ from %2.").arg(who, what);
}

/// A sentence about command line flags, with the window's names for them.
QString inWindowWords(QString sentence) {
  for (const auto& [flag, name] : {std::pair{"--train-steps", QStringLiteral("the number of steps")},
                                   {"--accumulate", QStringLiteral("the number of micro-batches")},
                                   {"--lr", QStringLiteral("the learning rate")},
                                   {"--weight-decay", QStringLiteral("the weight decay")},
                                   {"--clip-norm", QStringLiteral("the clip norm")}})
    sentence.replace(QLatin1String(flag), name);
  return capitalized(sentence);
}

/// "2 ranks and one forward pass", "4 ranks and training with adamw"
QString purposeText(int ranks, bool isTraining, program::Optimizer optimizer) {
  return isTraining ? QStringLiteral("%1 and training with %2").arg(ranksText(ranks), toQ(program::toText(optimizer)))
                    : QStringLiteral("%1 and one forward pass").arg(ranksText(ranks));
}

/// The run request for a plan here, with the user's settings.
pipeline::RunRequest requestFor(std::shared_ptr<const plan::Plan> plan, const spec::RunSpec& run = {}) {
  pipeline::RunRequest request{run};
  request.skipWeights = !plan->model.hasWeights;
  request.plan = std::move(plan);
  return request;
}
}  // namespace

Runs::Runs(const OpenedModel& opened, Settings& settings, const Plans& plans, Jobs& jobs, Notices& notices,
           QObject* parent)
    : QObject(parent), m_opened(opened), m_settings(settings), m_plans(plans), m_jobs(jobs), m_notices(notices) {
  m_sampleTimer.setInterval(kSampleMs);
  connect(&m_sampleTimer, &QTimer::timeout, this, &Runs::sampled);
  m_runSettings.ranks = settings.spec().ranks;
  m_runSettings.training.optimizer = settings.spec().cost.optimizer;
  connect(&settings, &Settings::changed, this, [this, last = settings.spec().ranks]() mutable {
    if (const int ranks = m_settings.spec().ranks; std::exchange(last, ranks) != ranks) {
      m_runSettings.ranks = ranks;
      emit settingsChanged();
    }
  });
}

bool isFor(const plan::Plan& plan, const RunSettings& settings) {
  const solve::CostSettings& cost = plan.spec.cost;
  const bool trainsSo = cost.isTraining && cost.optimizer == settings.training.optimizer;
  return plan.spec.ranks == settings.ranks && (!settings.training.isAsked() || trainsSo);
}

bool RunState::hasDifference() const {
  return report && std::any_of(report->outputs.begin(), report->outputs.end(),
                               [](const pipeline::OutputDifference& output) { return !output.within(); });
}

void Runs::forget() {
  m_state.reset();
  m_difference.reset();
}

void Runs::setSettings(const RunSettings& settings) {
  m_runSettings = settings;
  emit settingsChanged();
}

QString Runs::whyNot(const RunSettings& settings) const {
  const int ranks = settings.ranks;
  if (const auto checked = program::check(settings.training); !checked)
    return inWindowWords(toQ(checked.error().message));
  // A model folder can be captured again with a loss, and the run offers that.
  if (settings.training.isAsked() && m_opened.model() && m_opened.model()->exported &&
      !graph::findGradients(*m_opened.model()->aten).loss.isValid())
    return QStringLiteral("The program has no loss to train with. Export one that returns a loss, or turn Train off.");
  const bool hasNoSolution = m_plans.solved() && m_plans.solved()->result.outcome != solve::Outcome::Solved;
  if (hasNoSolution && m_plans.solved()->spec.ranks == ranks && !m_plans.isOutdated()) return m_plans.whyNone();
  if (m_plans.plan() && !m_plans.plan()->model.source.empty()) {
    const auto folder = pipeline::checkFolder(requestFor(m_plans.plan()));
    if (folder.isQuantized) return toQ(folder.text);
    if (folder.isIncomplete) return QStringLiteral("%1 Complete them and open the model again.").arg(toQ(folder.text));
    if (!folder.holds()) return QStringLiteral("%1 Put it back and open the model again.").arg(toQ(folder.text));
  }
  if (const auto& model = m_opened.model(); model && !model->info.quantization.empty())
    return toQ(program::whyNotRun(model->info.source, model->info.quantization));
  if (!m_plans.whyOpenedCannotRun().isEmpty()) return m_plans.whyOpenedCannotRun();
  // An opened plan runs as it is. It is replaced only at the user's request.
  const bool isOpened = m_plans.plan() && m_plans.plan() == m_plans.openedPlan();
  if (isOpened && !solvesFirst(settings)) return {};
  if (isOpened && !m_opened.model()->folder.path.empty())
    return QStringLiteral(
               "The opened plan is for %1, not for %2. Run it unchanged, or choose %2 in Solve ▸ Settings and solve.")
        .arg(purposeText(m_plans.plan()->spec.ranks, m_plans.plan()->spec.cost.isTraining,
                         m_plans.plan()->spec.cost.optimizer),
             purposeText(settings.ranks, settings.training.isAsked(), settings.training.optimizer));
  // Without its model, only the plan that names the weights can run.
  if (!m_opened.model()->folder.path.empty()) return {};
  return m_plans.openedPlan()
             ? QStringLiteral(
                   "The plan is open without its model and runs only unchanged, on %1%2. Open its model folder "
                   "to make another plan.")
                   .arg(ranksText(m_plans.openedPlan()->spec.ranks), m_plans.openedPlan()->spec.cost.isTraining
                                                                         ? QString()
                                                                         : QStringLiteral(" and one forward pass"))
             : QStringLiteral("A recorded search has no weights and cannot run. Open its model folder and solve it.");
}

void Runs::run(const RunSettings& settings) {
  if (!m_opened.model() || m_jobs.activity() == Activity::Running) return;
  if (const QString why = whyNot(settings); !why.isEmpty()) {
    m_notices.say(why, Severity::Failure);
    return m_jobs.end(Activity::Running, false, why);
  }
  if (!solvesFirst(settings) && m_jobs.activity() == Activity::Idle) return start(settings);
  m_afterSolve = settings;
  m_settings.setRanks(settings.ranks);
  if (settings.training.isAsked()) {
    m_settings.change([&](spec::PlanSpec& spec) {
      spec.cost.isTraining = true;
      spec.cost.optimizer = settings.training.optimizer;
    });
  }
  m_settings.solve();
}

void Runs::start(const RunSettings& settings) {
  auto monitor = std::make_shared<RunMonitor>(settings.ranks);
  m_state = RunState{settings, settings.backend, m_plans.plan(), monitor, nullptr, {}, true};
  const pipeline::RunRequest request = requestFor(m_plans.plan(), settings);
  m_notices.log(QStringLiteral("Starting %1").arg(ranksText(settings.ranks)));
  m_jobs.start(Activity::Running, QStringLiteral("Running on %1").arg(ranksText(settings.ranks)),
               [this, request, monitor](const Progress& progress) -> Worker::Completion {
                 auto report = pipeline::runPlan(
                     request, [monitor](const launch::RankEvent& event) { monitor->apply(event); }, progress);
                 monitor->finish(report ? &report->outcome : nullptr);
                 std::string kept = report ? pipeline::toJson(*report, *request.plan) : std::string();
                 return [this, report = std::move(report), kept = std::move(kept)]() {
                   if (report) m_history.add(kept);
                   take(report);
                 };
               });
  m_sampleTimer.start();
  emit changed();
}

std::optional<Result<launch::BackendChoice>> Runs::backendFor(const RunSettings& settings) {
  const bool asksCuda =
      settings.backend == launch::Backend::Nccl || (settings.backend == launch::Backend::Auto && launch::mayHaveGpu());
  if (!asksCuda) return launch::chooseBackend(settings.backend, settings.ranks);
  const plan::Plan* plan = m_plans.plan().get();
  const bool isFitting = plan && isFor(*plan, settings) && !settings.ignoreMemory;
  const std::int64_t bytes = isFitting ? pipeline::gpuBytes(*plan, {.isTraining = settings.training.isAsked()}) : 0;
  if (const auto probe = launch::lastGpuProbe())
    return launch::chooseBackend(settings.backend, settings.ranks, bytes, *probe);
  const QString tag = QStringLiteral("probe");
  if (!m_prober.isBusy(tag))
    m_prober.post(tag, {}, [this](const Progress& progress) -> Worker::Completion {
      launch::probeGpus(progress);
      return [this] { emit settingsChanged(); };
    });
  return std::nullopt;
}

const RunState* Runs::state() const {
  return m_state && (m_state->isActive || m_state->plan == m_plans.plan()) ? &*m_state : nullptr;
}

void Runs::take(const Result<pipeline::RunReport>& report) {
  m_sampleTimer.stop();
  m_state->isActive = false;
  QString sentence;
  Severity severity = Severity::Failure;
  if (report) {
    m_state->report = std::make_shared<const pipeline::RunReport>(*report);
    m_state->backend = report->spec.backend;
    const auto& failure = report->outcome.firstFailure;
    if (failure) {
      sentence = QStringLiteral("Rank %1 %2").arg(failure->rank).arg(toQ(failure->what));
      if (!failure->lastMessage.empty())
        sentence += QStringLiteral(": ") + toQ(failure->lastMessage).trimmed().section(QLatin1Char('\n'), -1);
    } else {
      severity = report->verdict == pipeline::RunVerdict::Failed ? Severity::Warning : Severity::Good;
      sentence = ranText(*report, m_state->settings.ranks);
    }
  } else {
    sentence = toQ(report.error().message);
    if (report.error().code == ErrorCode::Cancelled) severity = Severity::Info;
    m_state->failure = sentence;
  }
  emit sampled();
  emit changed();
  if (state()) m_notices.say(sentence, severity, About::Outcome);  // for another plan, the log has it
  m_jobs.end(Activity::Running, report && report->verdict != pipeline::RunVerdict::Failed, sentence);
}

void Runs::goOnAfterSolve(const QString& solved) {
  const auto wanted = std::exchange(m_afterSolve, std::nullopt);
  if (!wanted) return;
  if (m_plans.plan())
    start(*wanted);
  else
    m_jobs.end(Activity::Running, false, QStringLiteral("No plan to run: %1").arg(solved));
}

const FirstDifference* Runs::firstDifference() const {
  return m_difference && m_difference->plan == m_plans.plan() ? &*m_difference : nullptr;
}

void Runs::findFirstDifference() {
  const auto plan = m_plans.plan();
  if (!plan || m_jobs.activity() != Activity::Idle) return;
  if (const QString why = whyNot({.ranks = plan->spec.ranks}); !why.isEmpty()) {
    m_notices.say(why, Severity::Failure);
    return m_jobs.end(Activity::Running, false, why);
  }
  m_difference = FirstDifference{plan, std::nullopt, {}};
  m_jobs.start(Activity::Running, QStringLiteral("Searching for the first difference"),
               [this, plan, backend = m_runSettings.backend](const Progress& progress) -> Worker::Completion {
                 auto found = pipeline::bisect(
                     {.plan = plan, .backend = backend, .skipWeights = !plan->model.hasWeights}, progress);
                 return [this, plan, found = std::move(found)] { applyDifference(plan, found); };
               });
  emit firstDifferenceChanged();
}

void Runs::applyDifference(const std::shared_ptr<const plan::Plan>& plan, const Result<pipeline::Bisection>& found) {
  if (found)
    m_difference = FirstDifference{plan, *found, {}};
  else
    m_difference = FirstDifference{plan, std::nullopt, toQ(found.error().message)};
  const QString sentence =
      found ? prose(pipeline::bisectionText(*found, *plan)).section(QLatin1Char('\n'), 0, 0) : m_difference->failure;
  const Severity severity = found ? (found->first ? Severity::Warning : Severity::Good)
                            : found.error().code == ErrorCode::Cancelled ? Severity::Info
                                                                         : Severity::Failure;
  emit firstDifferenceChanged();
  if (firstDifference()) m_notices.say(sentence, severity, About::Outcome);
  m_jobs.end(Activity::Running, found.has_value(), sentence);
}

QStringList Runs::arguments(const RunSettings& settings) const {
  const QString folder = m_opened.folder();
  if (folder.isEmpty()) return {};
  // The shown plan runs unchanged. Other settings are solved first.
  const bool isShownPlan = !solvesFirst(settings) && !m_plans.branches().empty();
  spec::PlanSpec asked = isShownPlan ? m_plans.spec() : m_settings.spec();
  asked.ranks = settings.ranks;
  if (m_opened.model()->exported) asked.dropout = false;
  if (settings.training.isAsked()) {
    asked.cost.isTraining = true;
    asked.cost.optimizer = settings.training.optimizer;
  }
  spec::RunSpec run = settings;
  run.skipWeights = !m_opened.model()->info.hasWeights;
  const std::vector<std::string> ofRun = settings::argumentsOf(pipeline::runSettings(run.mode()), run);
  const bool isOpenedPlan = isShownPlan && m_plans.plan() == m_plans.openedPlan();
  const auto request =
      pipeline::PlanSettings::of(toStd(folder), m_opened.input(), asked, m_settings.deviceFile(asked.cost.profile));
  QStringList words;
  for (const std::string& word : isOpenedPlan ? std::vector{toStd(m_opened.source())} : pipeline::argumentsOf(request))
    words << toQ(word);
  for (const std::string& word : ofRun) words << toQ(word);
  return words;
}

}  // namespace cleave::views
