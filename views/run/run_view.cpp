#include "views/run/run_view.h"

#include <QEvent>
#include <QFileDialog>
#include <QMenu>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "pipeline/source/hub_model.h"
#include "views/base/text.h"
#include "views/run/cluster_dialog.h"
#include "views/run/history_page.h"
#include "views/run/lanes_page.h"
#include "views/run/log_page.h"
#include "views/run/memory_page.h"
#include "views/run/overview_page.h"
#include "views/run/run_export.h"
#include "views/run/run_setup.h"
#include "views/run/run_verdict.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr QSize kLeastPage(200, 70);
}

RunView::RunView(const OpenedModel& opened, const Settings& settings, const Plans& plans, Selection& selection,
                 Runs& runs, const Jobs& jobs, Files& files, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_plans(plans),
      m_selection(selection),
      m_runs(runs),
      m_jobs(jobs),
      m_files(files),
      m_verdict(new VerdictStrip),
      m_setup(new RunSetup(runs, jobs)),
      m_compare(m_setup->more().addAction(QStringLiteral("Find the First Difference"))),
      m_export(m_setup->more().addAction(QStringLiteral("Export the Run…"))),
      m_elsewhere(m_setup->more().addAction(QStringLiteral("Run on a Cluster…"))),
      m_pages(new QTabWidget),
      m_overview(new OverviewPage(runs)),
      m_lanes(new LanesPage(runs, selection, files)),
      m_memory(new MemoryPage(runs, selection)),
      m_log(new LogPage(runs)),
      m_history(new HistoryPage(runs.history())) {
  m_compare->setToolTip(QStringLiteral("Run this plan and the unsplit model, and compare value by value"));
  m_export->setToolTip(QStringLiteral("The report as JSON, or the memory samples as CSV"));
  m_elsewhere->setToolTip(QStringLiteral("The commands that run the plan on several machines"));
  m_setup->more().setToolTipsVisible(true);
  makePages();
  setFocusProxy(m_pages);
  makeColumn(this, {m_verdict, m_setup, m_pages}, m_pages);
  makeConnections();
  refreshAll();
}

void RunView::makePages() {
  m_pages->setDocumentMode(true);
  // The window may stay small: pages that need more room scroll, or are cut off at the bottom.
  for (QWidget* page : std::initializer_list<QWidget*>{m_overview, m_lanes, m_memory, m_log, m_history})
    page->setMinimumSize(kLeastPage);
  m_pages->addTab(m_overview, QStringLiteral("Overview"));
  m_pages->addTab(m_lanes, QStringLiteral("Lanes"));
  m_pages->addTab(m_memory, QStringLiteral("Memory"));
  m_pages->addTab(m_log, QStringLiteral("Log"));
  m_pages->addTab(m_history, QStringLiteral("History"));
}

void RunView::makeConnections() {
  connect(m_setup, &RunSetup::startWanted, this, [this] { run(m_runs.settings().ranks); });
  connect(m_compare, &QAction::triggered, &m_runs, &Runs::findFirstDifference);
  connect(m_export, &QAction::triggered, this, &RunView::exportRun);
  connect(m_elsewhere, &QAction::triggered, this, &RunView::showCluster);
  connect(m_overview, &OverviewPage::startAnywayChanged, this, &RunView::refreshSetup);
  connect(m_overview, &OverviewPage::rankChosen, m_log, &LogPage::showRank);
  connect(m_lanes, &LanesPage::graphWanted, this, &RunView::graphWanted);
  connect(m_memory, &MemoryPage::graphWanted, this, &RunView::graphWanted);
  connect(&m_runs, &Runs::settingsChanged, this, &RunView::refreshSetup);
  connect(&m_jobs, &Jobs::activityChanged, this, &RunView::refreshSetup);
  connect(&m_opened, &OpenedModel::changed, this, &RunView::refreshSetup);
  for (const auto signal : {&Settings::demandsChanged, &Settings::changed})
    connect(&m_settings, signal, this, &RunView::refreshSetup);
  connect(&m_runs, &Runs::sampled, this, &RunView::refreshRun);
  connect(&m_runs, &Runs::firstDifferenceChanged, this, &RunView::refreshRun);
  // A run belongs to its plan. Another plan clears its results.
  connect(&m_runs, &Runs::changed, this, &RunView::refreshAll);
  connect(&m_plans, &Plans::planChanged, this, &RunView::refreshAll);
}

void RunView::refreshAll() {
  m_lanes->showRun();
  m_memory->showRun();
  refreshRun();
  refreshSetup();
}

/// The parts that change while ranks run.
void RunView::refreshRun() {
  m_overview->showRun();
  m_log->showRun();
  refreshVerdict();
}

void RunView::refreshVerdict() {
  Verdict verdict = verdictOf(m_runs.state(), m_runs.firstDifference());
  if (!m_opened.model())
    verdict.sentence = QStringLiteral("Open a model to run its plan here.");
  else if (!m_runs.state() && !m_runs.firstDifference() && !m_plans.plan())
    verdict.sentence = m_plans.whyNone();
  m_verdict->setVerdict(verdict, remedies());
}

RunSettings RunView::asked() const {
  RunSettings settings = m_runs.settings();
  settings.ignoreMemory = m_overview->wantsStartAnyway();
  return settings;
}

/// Empty: the ranks fit into memory, or their need is unknown.
QString RunView::whyTooLarge() const {
  for (const pipeline::MemoryCheck& check :
       memoryBeforeRun(m_plans.plan().get(), m_runs.settings(), m_runs.backendFor(m_runs.settings())))
    if (!check.fits()) return toQ(check.text);
  return {};
}

QString RunView::run(int ranks) {
  RunSettings settings = m_runs.settings();
  if (settings.ranks != ranks) {
    settings.ranks = ranks;
    m_runs.setSettings(settings);
  }
  if (const QString why = whyTooLarge(); !why.isEmpty() && !m_overview->wantsStartAnyway())
    return QStringLiteral("%1 Select “%2” to start anyway.").arg(why, m_overview->startAnywayText());
  if (lacksWeights())
    emit weightsWanted(asked());
  else
    start();
  return {};
}

void RunView::start() { m_runs.run(asked()); }

void RunView::showCluster() {
  if (!m_cluster) m_cluster = new ClusterDialog(m_plans, m_runs, this);
  m_cluster->show();
  m_cluster->raise();
}

/// A folder without weights is a plain configuration, which is intended. An archive has lost its weights, and a Hub can
/// provide them.
bool RunView::lacksWeights() const {
  const auto& model = m_opened.model();
  if (!model || model->info.hasWeights || m_opened.folder().isEmpty()) return false;
  return (model->exported || pipeline::lacksHubWeights(model->info.source)) &&
         m_runs.whyNot(m_runs.settings()).isEmpty() && m_jobs.activity() != Activity::Running;
}

void RunView::refreshSetup() {
  const RunSettings& settings = m_runs.settings();
  const bool hasModel = m_opened.model() != nullptr, isIdle = m_jobs.activity() == Activity::Idle;
  const QString whyNot = hasModel ? m_runs.whyNot(settings) : QString();
  const QString tooLarge = hasModel ? whyTooLarge() : QString();
  m_overview->offerStartAnyway(tooLarge);
  m_setup->setStartable(
      hasModel && whyNot.isEmpty() && isIdle && (tooLarge.isEmpty() || m_overview->wantsStartAnyway()), whyNot);
  const RunState* run = m_runs.state();
  const bool hasRanks = run && run->hasRanks();
  m_export->setEnabled(hasRanks && !run->isActive);
  m_elsewhere->setEnabled(m_plans.plan() != nullptr);
  m_compare->setEnabled(m_plans.plan() != nullptr && isIdle &&
                        m_runs.whyNot({.ranks = m_plans.plan()->spec.ranks}).isEmpty());
  if (!hasModel) {
    m_overview->showEmpty(QStringLiteral(
        "Open a model to run its plan here, on ranks of this machine. This page shows live memory per rank "
        "with the prediction, and whether the split model computes the same."));
  } else if (hasRanks && (!m_plans.plan() || isFor(*m_plans.plan(), settings))) {
    m_overview->showChecks({}, {});
  } else {
    m_overview->showChecks(checksBeforeRun(m_plans.plan().get(), settings, m_runs.backendFor(settings), whyNot),
                           whyNot.isEmpty() ? runCommand(m_runs, asked()) : QString());
  }
  refreshVerdict();
}

// ---- remedies

std::vector<RunRemedy> RunView::remedies() {
  std::vector<RunRemedy> remedies;
  const RunState* run = m_runs.state();
  const bool isIdle = m_jobs.activity() == Activity::Idle;
  if (const FirstDifference* difference = m_runs.firstDifference();
      isIdle && difference && difference->found && difference->found->first)
    remedies.push_back({QStringLiteral("Show It in the Graph"),
                        QStringLiteral("Colour the graph by error and select the first node"),
                        [this, value = difference->found->first->value] {
                          m_selection.focusValue(value);
                          emit graphWanted();
                        }});
  if (!run || run->isActive || !isIdle) return remedies;
  if (!run->report)
    addFailedStart(remedies, *run);
  else if (run->report->verdict == pipeline::RunVerdict::Failed)
    addFailedRun(remedies, *run);
  return remedies;
}

void RunView::addFailedStart(std::vector<RunRemedy>& remedies, const RunState& run) {
  RunSettings settings = run.settings;
  if (!whyTooLarge().isEmpty() && !settings.ignoreMemory)
    remedies.push_back({QStringLiteral("Run Anyway"),
                        QStringLiteral("Start the ranks although memory is predicted to be too small"),
                        [this, settings]() mutable {
                          settings.ignoreMemory = true;
                          m_runs.run(settings);
                        }});
  if (const auto choice = m_runs.backendFor(settings); choice && !*choice)
    remedies.push_back({QStringLiteral("Run over Gloo on CPUs"),
                        QStringLiteral("Run the ranks on this machine's processors"), [this, settings]() mutable {
                          settings.backend = launch::Backend::Gloo;
                          m_runs.setSettings(settings);
                          m_runs.run(settings);
                        }});
  const auto& model = m_opened.model();
  const bool lacksLoss = settings.training.isAsked() && model && !model->exported && !m_opened.input().loss;
  if (lacksLoss)
    remedies.push_back({QStringLiteral("Capture with a Loss and Train"),
                        QStringLiteral("Training needs a loss for the backward pass"), [this, settings] {
                          spec::InputSpec options = m_opened.input();
                          options.loss = true;
                          emit recaptureWanted(options, settings);
                        }});
}

void RunView::addFailedRun(std::vector<RunRemedy>& remedies, const RunState& run) {
  if (const auto& failure = run.report->outcome.firstFailure) {
    remedies.push_back({QStringLiteral("Show the Log of Rank %1").arg(failure->rank),
                        QStringLiteral("Its output before it failed"), [this, rank = failure->rank] {
                          showPage(Page::Log);
                          m_log->showRank(rank);
                        }});
    return;
  }
  if (!run.hasDifference()) return;
  if (!m_runs.firstDifference())
    remedies.push_back(
        {QStringLiteral("Find the First Difference"), m_compare->toolTip(), [this] { m_runs.findFirstDifference(); }});
  const graph::DType dtype = run.plan->model.dtype;
  const bool isHalf = dtype == graph::DType::BFloat16 || dtype == graph::DType::Float16;
  if (isHalf && !run.plan->model.isExported && !m_opened.folder().isEmpty())
    remedies.push_back({QStringLiteral("Run in float32"),
                        QStringLiteral("Rounding in half precision can hide a wrong split, or look like one"),
                        [this, settings = run.settings] {
                          spec::InputSpec options = m_opened.input();
                          options.dtype = graph::DType::Float32;
                          emit recaptureWanted(options, settings);
                        }});
}

void RunView::showPage(Page page) { m_pages->setCurrentIndex(static_cast<int>(page)); }
RunView::Page RunView::page() const { return static_cast<Page>(m_pages->currentIndex()); }

void RunView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  // When all children have the palette too.
  if (event->type() == QEvent::PaletteChange)
    QMetaObject::invokeMethod(this, &RunView::refreshAll, Qt::QueuedConnection);
}

void RunView::exportRun() {
  const RunState* state = m_runs.state();
  if (!state) return;
  const QString path = QFileDialog::getSaveFileName(this, QStringLiteral("Export the run"), QStringLiteral("run.json"),
                                                    QStringLiteral("JSON (*.json);;Memory samples as CSV (*.csv)"));
  if (path.isEmpty()) return;
  const QString text = path.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive) ? runToCsv(*state) : runToJson(*state);
  m_files.save(path, [text] { return text.toUtf8(); });
}

}  // namespace cleave::views
