// Ways into a document: a model, a plan, a recorded search, a sample.
#include <QFileInfo>

#include "base/files.h"
#include "pipeline/check_plan.h"
#include "pipeline/plan_flags.h"
#include "pipeline/source.h"
#include "plan/plan_file.h"
#include "views/base/text.h"
#include "views/session/document.h"

namespace cleave::views {

namespace {
const QString kOpenTag = QStringLiteral("open"), kCheckTag = QStringLiteral("check");
}

/// Demands are about one model's layers: they do not go over to the next.
pipeline::SolveOptions Document::settingsForNewModel() const {
  pipeline::SolveOptions settings = m_isBorrowed ? m_ownSettings : m_settings;
  settings.pins.clear();
  settings.rulesOff.clear();
  settings.redistributable.clear();
  return settings;
}

void Document::open(const QString& path) {
  postOpen(path, [this, path, settings = settingsForNewModel()](const Progress& progress) -> Worker::Completion {
    const auto source = pipeline::recognise(toStd(path));
    if (!source) return [this, error = source.error()] { failOpen(error); };
    const QString found = toQ(source->path.string());
    switch (source->kind) {
      case pipeline::SourceKind::Model: return loadModel(this, found, {}, settings, std::nullopt, false, progress);
      case pipeline::SourceKind::Plan: return loadPlan(this, found, progress);
      case pipeline::SourceKind::Trace: break;
    }
    return loadTrace(this, found, progress);
  });
}

void Document::openSource(const QString& folder, const torch_capture::CaptureOptions& options) {
  postOpen(folder, [=, this, settings = settingsForNewModel()](const Progress& progress) {
    return loadModel(this, folder, options, settings, std::nullopt, false, progress);
  });
}

void Document::openSample(const pipeline::Sample& sample) {
  pipeline::SolveOptions settings = sample.solve;
  // A sample says how it is solved, so that it looks the same whatever was solved before.
  const auto device = pipeline::deviceProfile(std::string(pipeline::kDefaultDevice));
  if (device) settings.cost.profile = *device;
  const QString folder = toQ(sample.model.string());
  postOpen(folder, [=, this](const Progress& progress) {
    return loadModel(this, folder, sample.capture, settings, sample, true, progress);
  });
}

void Document::recapture(const torch_capture::CaptureOptions& options, const pipeline::SolveOptions& settings) {
  const QString folder = modelFolder();
  if (folder.isEmpty()) return;
  postOpen(folder, [=, this, sample = m_sample, isBorrowed = m_isBorrowed](const Progress& progress) {
    return loadModel(this, folder, options, settings, sample, isBorrowed, progress);
  });
}

void Document::postOpen(const QString& path, std::function<Worker::Completion(const Progress&)> load) {
  m_jobs.cancelAll();
  m_runAfterSolve.reset();
  emit logged(tr("Opening %1").arg(path));
  m_jobs.post(kOpenTag, tr("Opening %1").arg(path), std::move(load));
  setActivity(Activity::Opening);
}

void Document::failOpen(const Error& error) {
  emit message(toQ(error.message), Severity::Failure);
  endWork(Activity::Opening, false, toQ(error.message));
}

/// Settings that come with a sample, plan or recording are borrowed: the next model has the user's own again.
void Document::takeOpened(const QString& path, const pipeline::SolveOptions& settings,
                          std::shared_ptr<const pipeline::Model> model, bool isBorrowed) {
  if (isBorrowed && !m_isBorrowed) m_ownSettings = m_settings;
  m_isBorrowed = isBorrowed;
  m_openedPlan.reset();
  m_source = path;
  m_settings = settings;
  m_settings.cache = std::make_shared<solve::SolveCache>();
  takeModel(std::move(model));
}

Worker::Completion Document::loadModel(Document* document, const QString& path,
                                       const torch_capture::CaptureOptions& options,
                                       const pipeline::SolveOptions& settings, std::optional<pipeline::Sample> sample,
                                       bool isBorrowed, const Progress& progress) {
  auto opened = pipeline::openModel(toStd(path), options, progress);
  if (!opened) return [document, error = opened.error()] { document->failOpen(error); };
  return [=, model = *opened] {
    document->m_capture = options;
    document->m_sample = sample;
    document->takeOpened(path, settings, model, isBorrowed);
    document->endWork(Activity::Opening, true, {});
    document->solve();
  };
}

Worker::Completion Document::loadPlan(Document* document, const QString& path, const Progress& progress) {
  auto opened = pipeline::reopenPlan(toStd(path), progress);
  if (!opened) return [document, error = opened.error()] { document->failOpen(error); };
  // The plan's maker may have had other profiles, also under the names of those here.
  const solve::DeviceProfile& device = opened->plan->costSettings.profile;
  const auto bundled = pipeline::deviceProfile(device.name);
  const bool isOwnProfile = !bundled || *bundled != device;
  return [=, reopened = *opened] {
    const pipeline::SolveOptions& options = reopened.solved->options;
    if (isOwnProfile)
      document->m_deviceFiles.push_back({options.cost.profile, toStd(QFileInfo(path).absoluteFilePath())});
    document->m_capture = pipeline::captureOptionsOf(reopened.plan->model);
    document->m_sample.reset();
    document->takeOpened(path, options, reopened.model, true);
    document->m_openedPlan = reopened.plan;
    document->takeBranch(
        {{}, {}, options, reopened.solved, reopened.plan, nullptr, toQ(reopened.note), Severity::Warning});
    document->say(document->m_branches.front());
    document->endWork(Activity::Opening, true, tr("Opened a plan for %1").arg(ranksText(reopened.plan->ranks)));
    if (reopened.note.empty()) document->checkOpened(path);
  };
}

/// What a plan file says of its layers is shown at once, and held against its model behind that.
void Document::checkOpened(const QString& path) {
  const auto plan = m_openedPlan;
  m_files.post(kCheckTag, tr("Checking %1").arg(path), [=, this](const Progress& progress) -> Worker::Completion {
    const auto text = readTextFile(toStd(path), plan::kPlanLimits.bytes);
    const auto check = text ? pipeline::checkPlan(*text, progress) : tl::unexpected<Error>(text.error());
    if (!check || check->findings.empty()) return [] {};
    return [this, plan, finding = toQ(check->findings.front())] {
      if (m_openedPlan != plan || m_plan != plan) return;
      emit message(tr("This plan file does not hold: %1").arg(finding), Severity::Warning, About::Plan);
    };
  });
}

Worker::Completion Document::loadTrace(Document* document, const QString& path, const Progress& progress) {
  auto opened = solve::openTrace(toStd(path), progress);
  if (!opened) return [document, error = opened.error()] { document->failOpen(error); };
  return [=, trace = *opened] {
    const auto problem = trace->problem();
    auto model = std::make_shared<pipeline::Model>();
    model->aten = model->captured = problem->graph;
    pipeline::SolveOptions settings = document->m_settings;
    settings.ranks = problem->context.worldSize;
    settings.sequenceParallel = problem->context.sequenceParallel;
    settings.pins = problem->pins;
    settings.rulesOff = problem->rulesOff;
    settings.redistributable = problem->redistributable;
    settings.engine = trace->engine().value_or(settings.engine);
    settings.menu = problem->context.menu;
    if (trace->engine() && settings.menu == pipeline::defaultMenu(settings.engine)) settings.menu.reset();
    settings.cost = problem->cost;
    // Older files do not say the device.
    if (settings.cost.profile == solve::DeviceProfile()) settings.cost.profile = document->m_settings.cost.profile;
    document->m_sample.reset();
    document->takeOpened(path, settings, std::move(model), true);
    document->setTrace(trace);
    document->endWork(Activity::Opening, true,
                      tr("Opened a search of %1").arg(countedText(document->stepCount(), "event")));
    document->seek(document->stepCount());
  };
}

QString Document::modelFolder() const { return m_model ? toQ(m_model->info.source) : QString(); }

/// Where the command line finds the profile: the last file it came from that is still there; empty where its name is
/// enough.
std::string Document::deviceFile(const solve::DeviceProfile& profile) const {
  for (auto known = m_deviceFiles.rbegin(); known != m_deviceFiles.rend(); ++known)
    if (known->profile == profile && QFileInfo::exists(toQ(known->file))) return known->file;
  return {};
}

QStringList Document::runArguments(int ranks) const {
  const QString folder = modelFolder();
  if (folder.isEmpty()) return {};
  // The shown plan is run as it is; for another number of ranks the settings are solved first.
  const bool isShownPlan = m_plan && m_plan->ranks == ranks && m_shownBranch < m_branches.size();
  pipeline::SolveOptions options = isShownPlan ? m_branches[m_shownBranch].options : m_settings;
  options.ranks = ranks;
  QStringList words;
  for (const std::string& word :
       pipeline::PlanFlags::of(toStd(folder), m_capture, options, deviceFile(options.cost.profile)).arguments())
    words << toQ(word);
  if (!m_model->info.hasWeights) words << QStringLiteral("--skip-weights");
  return words;
}

}  // namespace cleave::views
