// Opens a model, a plan, a recorded search, or a sample. Saved sessions are in session_saved.cpp.
#include <QFileInfo>

#include "base/files.h"
#include "pipeline/solve/check_plan.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/reopen.h"
#include "pipeline/source/describe_model.h"
#include "pipeline/source/hub_model.h"
#include "pipeline/source/open.h"
#include "pipeline/source/plan_file.h"
#include "pipeline/source/source.h"
#include "program/rank_program.h"
#include "views/base/text.h"
#include "views/session/session.h"

namespace cleave::views {

/// The result of reading, for all parts.
struct Session::Arrival {
  QString path;
  std::shared_ptr<const pipeline::Model> model;
  spec::InputSpec input;
  spec::PlanSpec settings;
  bool isBorrowed = true;  ///< the settings came with the file
  std::optional<pipeline::Sample> sample;
};

void Session::open(const QString& path) {
  postOpen(path,
           [this, path, settings = m_settings.forNewModel(),
            watcher = m_jobs.watcher()](const Progress& progress) -> Worker::Completion {
             const auto brought = pipeline::resolveModel(toStd(path), hub::Wanted::Config, watcher, progress);
             const auto source = brought ? pipeline::recognise(*brought) : tl::unexpected<Error>(brought.error());
             if (!source) return [this, error = source.error()] { failOpen(error); };
             const QString found = toQ(source->path.string());
             switch (source->kind) {
               case pipeline::SourceKind::Model:
                 return loadModel(this, found, {}, settings, std::nullopt, false, progress);
               case pipeline::SourceKind::Plan:
                 return pipeline::isForeignPlan(source->path.string())
                            ? loadForeign(exchange::readForeignPlan(source->path))
                            : loadPlan(this, found, progress);
               case pipeline::SourceKind::Session: return loadSession(this, found, watcher, progress);
               case pipeline::SourceKind::Trace: break;
             }
             return loadTrace(this, found, progress);
           });
}

void Session::openSource(const QString& folder, const spec::InputSpec& input) {
  postOpen(folder, [=, this, settings = m_settings.forNewModel()](const Progress& progress) {
    return loadModel(this, folder, input, settings, std::nullopt, false, progress);
  });
}

void Session::openSample(const pipeline::Sample& sample) {
  spec::PlanSpec settings = sample.spec;
  // A sample has fixed solve settings, so that it looks the same after any previous solve.
  const auto device = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice));
  if (device) settings.cost.profile = *device;
  const QString folder = toQ(sample.model.string());
  postOpen(folder, [=, this](const Progress& progress) {
    return loadModel(this, folder, sample.input, settings, sample, true, progress);
  });
}

void Session::recapture(const spec::InputSpec& input, const spec::PlanSpec& settings) {
  openAgain(input, settings, Weights::AsTheyAre);
}

void Session::openAgain(const spec::InputSpec& input, const spec::PlanSpec& settings, Weights weights) {
  const QString folder = m_opened.folder();
  if (folder.isEmpty()) return;
  postOpen(folder,
           [=, this, sample = m_opened.sample(), isBorrowed = m_settings.isBorrowed(),
            watcher = m_jobs.watcher()](const Progress& progress) -> Worker::Completion {
             std::string found = toStd(folder);
             if (weights == Weights::Fetched) {
               const auto brought = pipeline::fetchHubWeights(found, watcher, progress);
               if (!brought) return [this, error = brought.error()] { failOpen(error); };
               found = *brought;
             }
             return loadModel(this, toQ(found), input, settings, sample, isBorrowed, progress);
           });
}

void Session::recaptureAndRun(const spec::InputSpec& input, const RunSettings& run) {
  recapture(input, settingsFor(run));
  m_runs.runOnceSolved(run);
}

void Session::fetchWeightsAndRun(const RunSettings& run) {
  openAgain(m_opened.input(), settingsFor(run), Weights::Fetched);
  m_runs.runOnceSolved(run);
}

spec::PlanSpec Session::settingsFor(const RunSettings& run) const {
  spec::PlanSpec settings = m_settings.spec();
  settings.ranks = run.ranks;
  if (run.training.isAsked()) {
    settings.cost.isTraining = true;
    settings.cost.optimizer = run.training.optimizer;
  }
  return settings;
}

bool Session::isCapturedOtherwise() const {
  const pipeline::Model& model = *m_opened.model();
  return model.folder.config && model.info.input.dropout != m_settings.spec().dropsOut();
}

void Session::postOpen(const QString& path, Load load) {
  m_jobs.cancel();
  m_runs.dropWanted();
  m_restored.reset();
  m_notices.log(QStringLiteral("Opening %1").arg(path));
  m_jobs.start(Activity::Opening, QStringLiteral("Opening %1").arg(path), std::move(load));
}

void Session::failOpen(const Error& error) {
  m_runs.dropWanted();
  m_restored.reset();
  m_notices.say(toQ(error.message), Severity::Failure);
  m_jobs.end(Activity::Opening, false, toQ(error.message));
}

/// Updates all parts before any view is notified.
void Session::applyOpened(const Arrival& arrival) {
  m_liveTrace.reset();
  m_opened.take(arrival.model, arrival.path, arrival.input, arrival.sample);
  m_splits.applyOpened();
  m_settings.take(arrival.settings, arrival.isBorrowed);
  m_plans.forget();
  m_selection.forget();
  m_runs.forget();
  m_undo.clear();
  m_debugger.forget();
  m_answers.setModel(arrival.model, m_settings.spec());
  m_opened.announce();
  m_settings.announce();
  m_debugger.announce();
  m_plans.announce();
  m_selection.announce();
  m_runs.announce();
  const pipeline::Model& model = *arrival.model;
  m_notices.log(QStringLiteral("%1: %2, captured in %3 ms, decomposed in %4 ms")
                    .arg(title(), countedText(pipeline::countOperators(*model.aten), "operator"),
                         QString::number(model.timings.captureMs, 'f', 1),
                         QString::number(model.timings.decomposeMs, 'f', 1)));
}

Worker::Completion Session::loadModel(Session* session, const QString& path, const spec::InputSpec& input,
                                      const spec::PlanSpec& settings, std::optional<pipeline::Sample> sample,
                                      bool isBorrowed, const Progress& progress) {
  spec::InputSpec asked = input;
  const auto source = pipeline::recognise(toStd(path));
  asked.dropout = settings.dropsOut() && source && !source->isExported;
  auto opened = pipeline::openModel(toStd(path), asked, progress);
  if (!opened) return [session, error = opened.error()] { session->failOpen(error); };
  return [=, model = *opened] {
    // An exported program's sizes are those of its export.
    session->applyOpened({path, model, model->exported ? model->info.input : asked, settings, isBorrowed, sample});
    session->m_jobs.end(Activity::Opening, true, {});
    session->startSolve();
  };
}

Worker::Completion Session::loadPlan(Session* session, const QString& path, const Progress& progress) {
  auto opened = pipeline::reopenPlan(toStd(path), progress);
  if (!opened) return [session, error = opened.error()] { session->failOpen(error); };
  // The plan's author may have had other profiles, also under names that exist here.
  const bool isOwnProfile = !pipeline::isBundled(opened->plan->spec.cost.profile);
  return [=, reopened = *opened] {
    const spec::PlanSpec& spec = reopened.solved->spec;
    if (isOwnProfile) session->m_settings.noteDeviceFile(spec.cost.profile, path);
    session->applyOpened({path, reopened.model, reopened.plan->model.input, spec, true, {}});
    session->m_plans.applyOpened(reopened.plan, toQ(reopened.whyNotRun));
    session->m_plans.take({{}, {}, spec, reopened.solved, reopened.plan, nullptr});
    session->m_plans.say(toQ(reopened.note), Severity::Warning);
    session->m_jobs.end(Activity::Opening, true,
                        QStringLiteral("Opened a plan for %1").arg(ranksText(reopened.plan->spec.ranks)));
    if (reopened.note.empty()) session->checkOpened(path);
  };
}

/// Solves with the foreign library's splits as pins, next to the shown plan. It can be undone like any demand.
Worker::Completion Session::loadForeign(const Result<exchange::ForeignPlan>& read) {
  return [=, this] {
    if (!read) return failOpen(read.error());
    const exchange::ForeignPlan& foreign = *read;
    const auto& model = m_opened.model();
    if (!model)
      return failOpen({ErrorCode::BadInput, fmt::format("{} is a plan of another library and does not name its model. "
                                                        "Open the model first.",
                                                        foreign.where)});
    const exchange::ForeignDemands found = exchange::demandsOf(foreign, *model->aten, model->info.modelType);
    if (!found.problems.empty()) return failOpen({ErrorCode::BadInput, exchange::problemsText(found, " ")});
    // The solve's result replaces this sentence in the bar. The log keeps it.
    for (const std::string& note : found.notes) m_notices.log(toQ(note));
    connect(
        &m_plans, &Plans::planChanged, this,
        [this] {
          if (!m_plans.plan()) return;
          for (const std::string& sentence : exchange::differencesOf(*m_plans.plan())) m_notices.log(toQ(sentence));
        },
        Qt::SingleShotConnection);
    m_jobs.end(Activity::Opening, true,
               QStringLiteral("%1 splits %2 of %3 layers; the others are replicated")
                   .arg(toQ(foreign.where))
                   .arg(found.namedLayers)
                   .arg(found.layers));
    spec::PlanSpec spec = m_settings.spec();
    spec.pins = found.pins;
    spec.redistributable = found.redistributable;
    spec.candidateSet = rules::CandidateSet::Full;  // it has more strategies than Optimum
    if (foreign.ranks) spec.ranks = *foreign.ranks;
    const QString name = QStringLiteral("Plan of %1").arg(toQ(fs::path(foreign.where).filename().string()));
    m_plans.nameNext(name);
    m_settings.demand(spec, name);
  };
}

/// Shows a plan file at once and checks it against its model in the background.
void Session::checkOpened(const QString& path) {
  const auto plan = m_plans.openedPlan();
  m_files.worker().post(
      QStringLiteral("check"), QStringLiteral("Checking %1").arg(path),
      [=, this](const Progress& progress) -> Worker::Completion {
        const auto text = readTextFile(toStd(path), program::kPlanLimits.bytes);
        const auto check = text ? pipeline::checkPlan(*text, progress) : tl::unexpected<Error>(text.error());
        if (!check || (check->findings.empty() && check->otherVersion.empty())) return [] {};
        const bool holds = check->findings.empty();
        const QString sentence =
            holds ? toQ(check->otherVersion)
                  : QStringLiteral("This plan file failed its check: %1").arg(toQ(check->findings.front()));
        return [=, this] {
          if (m_plans.openedPlan() != plan || m_plans.plan() != plan) return;
          m_notices.say(sentence, holds ? Severity::Info : Severity::Warning, About::Plan);
        };
      });
}

Worker::Completion Session::loadTrace(Session* session, const QString& path, const Progress& progress) {
  auto opened = solve::openTrace(toStd(path), progress);
  if (!opened) return [session, error = opened.error()] { session->failOpen(error); };
  return [=, trace = *opened] {
    const auto problem = trace->problem();
    auto model = std::make_shared<pipeline::Model>();
    model->aten = model->captured = problem->graph;
    const spec::PlanSpec& before = session->m_settings.spec();
    spec::PlanSpec settings = spec::specOf(*problem);
    settings.engine = trace->engine().value_or(before.engine);
    if (trace->engine() && settings.candidateSet == spec::defaultCandidateSet(settings.engine))
      settings.candidateSet.reset();
    // Older files do not contain the device.
    if (settings.cost.profile == solve::DeviceProfile()) settings.cost.profile = before.cost.profile;
    session->applyOpened({path, std::move(model), {}, settings, true, {}});
    session->m_debugger.show(trace, nullptr);
    session->m_debugger.seek(session->m_debugger.stepCount());
    session->m_jobs.end(
        Activity::Opening, true,
        QStringLiteral("Opened a search of %1").arg(countedText(session->m_debugger.stepCount(), "event")));
  };
}

}  // namespace cleave::views
