#include "views/window/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QComboBox>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QProgressBar>
#include <QSettings>
#include <QSpinBox>
#include <QStackedWidget>
#include <QStatusBar>
#include <QStyleFactory>
#include <QTabBar>
#include <QTabWidget>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

#include "views/base/icons.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/graph/view/graph_view.h"
#include "views/run/run_view.h"
#include "views/widgets/focus_ring.h"
#include "views/widgets/key_priority.h"
#include "views/widgets/panel_parts.h"
#include "views/window/graph_area.h"
#include "views/window/message_bar.h"
#include "views/window/solve_settings.h"
#include "views/window/start_page.h"

namespace cleave::views {

namespace {
constexpr int kLayoutVersion = 2;
constexpr int kLayoutMs = 60;
const QString kStateKey = QStringLiteral("window/state"), kGeometryKey = QStringLiteral("window/geometry"),
              kDarkKey = QStringLiteral("window/dark");

}  // namespace

void applyTheme(bool isDark) {
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  const Theme theme = isDark ? Theme::darkTheme() : Theme::light();
  QApplication::setPalette(theme.palette());
  // Fusion draws raised frames; a thin line is enough.
  qApp->setStyleSheet(
      QStringLiteral("QMainWindow::separator{width:4px;height:4px;background:%1}"
                     "QToolTip{color:%2;background:%3;border:1px solid %1;padding:3px}"
                     "QToolBar{border:none;border-bottom:1px solid %1;spacing:3px;padding:3px}"
                     "QStatusBar{border-top:1px solid %1} QStatusBar::item{border:none}"
                     "QDockWidget::title{padding:4px 8px;background:%4;border-bottom:1px solid %1}"
                     "QTableView,QTreeView,QAbstractScrollArea{border:none}"
                     "QCheckBox::indicator{width:12px;height:12px;border:1px solid %5;border-radius:2px;background:%3}"
                     "QCheckBox::indicator:checked{background:%6}"
                     "QHeaderView::section{border:none;border-bottom:1px solid %1;padding:3px 6px;background:%4}")
          .arg(theme.border.name(), theme.text.name(), theme.groundRaised.name(), theme.groundSunken.name(),
               theme.textQuiet.name(), theme.accent.name()));
}

MainWindow::MainWindow(Session& session, bool remembers, QWidget* parent)
    : QMainWindow(parent), m_session(session), m_samples(pipeline::bundledSamples()), m_remembers(remembers) {
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  resize(1280, 800);

  makeCentre();
  new KeyPriority(*this);
  connect(new FocusRing(*this), &FocusRing::tabbedTo, this, [this](QWidget* widget) {
    for (const auto& [name, dock] : m_docks)
      if (dock->isAncestorOf(widget) && dock->visibleRegion().isEmpty()) dock->raise();
  });
  connect(qApp, &QApplication::focusChanged, this, [this](const QWidget* old) { keepFocusInView(old); });
  makeDocks();
  makeMenus();
  makeToolBar();
  makeStatusBar();
  updateIcons();
  m_start->setSamples(m_samples);
  updateRecent();
  followStartPage();
  connectMessages();
  followJobs();
  followSession();

  for (const auto& [name, widget] : m_docks) widget->hide();
  m_toolBar->hide();
  if (m_remembers) {
    restoreGeometry(QSettings().value(kGeometryKey).toByteArray());
    loadSolveSettings(m_session.settings());
  }
  updateActions();
  updateSettings();
  updateStep();
  updateTitle();
}

void MainWindow::makeCentre() {
  m_start = new StartPage;
  m_graph = new GraphArea(m_session);
  connect(m_graph, &GraphArea::decisionWanted, this, [this] { raiseDock(QStringLiteral("Decision")); });
  m_run = new RunView(m_session.opened(), m_session.settings(), m_session.plans(), m_session.selection(),
                      m_session.runs(), m_session.jobs(), m_session.files());
  connect(m_run, &RunView::weightsWanted, this, &MainWindow::askForWeights);
  connect(m_run, &RunView::graphWanted, this, &MainWindow::showGraph);
  connect(m_run, &RunView::recaptureWanted, &m_session, &Session::recaptureAndRun);
  m_message = new MessageBar;
  m_views = new QTabWidget;
  m_views->setDocumentMode(true);
  m_views->tabBar()->setFocusPolicy(Qt::TabFocus);
  m_views->addTab(m_graph, QStringLiteral("Graph"));
  m_views->addTab(m_run, QStringLiteral("Run"));
  m_stack = new QStackedWidget;
  m_stack->addWidget(m_start);
  m_stack->addWidget(m_views);
  auto* central = new QWidget;
  makeColumn(central, {m_stack, m_message}, m_stack);
  setCentralWidget(central);
}

void MainWindow::followStartPage() {
  connect(m_start, &StartPage::openRequested, this, &MainWindow::openDialog);
  connect(m_start, &StartPage::hubRequested, this, &MainWindow::openHubDialog);
  connect(m_start, &StartPage::recentChosen, this, &MainWindow::openPath);
  connect(m_start, &StartPage::sampleChosen, this,
          [this](int index) { m_session.openSample((*m_samples)[static_cast<std::size_t>(index)]); });
}

/// Progress, and the end of work.
void MainWindow::followJobs() {
  connect(&m_session.jobs(), &Jobs::activityChanged, this, &MainWindow::applyBusy);
  connect(&m_session.jobs(), &Jobs::downloading, this, &MainWindow::showDownload);
  connect(&m_session.jobs(), &Jobs::progressed, this, &MainWindow::updateProgress);
  connect(&m_session.answers(), &Answers::progressed, this, &MainWindow::updateProgress);
  connect(&m_session.answers(), &Answers::surveyStarted, this, [this](const QString& title) {
    m_survey = title;
    applyBusy();
  });
  connect(&m_session.answers(), &Answers::surveyEnded, this, [this] {
    const bool wasShown = !std::exchange(m_survey, QString()).isEmpty();
    if (!wasShown) return;
    applyBusy();
    m_status->clear();
    updateStep();  // shows the current step again
  });
  connect(&m_session.files(), &Files::drawingChanged, this, [this] {
    if (m_session.files().drawing().isEmpty() && m_session.isIdle()) m_status->clear();
    applyBusy();
  });
}

void MainWindow::followSession() {
  connect(&m_session.opened(), &OpenedModel::changed, this, &MainWindow::showModel);
  connect(&m_session, &Session::sessionRestored, this, &MainWindow::applySession);
  connect(&m_session.plans(), &Plans::branchesChanged, this, &MainWindow::updateBranchActions);
  for (const auto signal : {&Debugger::stepChanged, &Debugger::traceChanged, &Debugger::traceGrew})
    connect(&m_session.debugger(), signal, this, &MainWindow::updateStep);
  connect(&m_session.settings(), &Settings::changed, this, &MainWindow::updateSettings);
  connect(&m_session.plans(), &Plans::branchesChanged, this, &MainWindow::updateSettings);
  connect(&m_session.settings(), &Settings::changed, this, &MainWindow::updateTitle);
  connect(&m_session.debugger(), &Debugger::traceChanged, this, &MainWindow::updateActions);
  connect(&m_session.plans(), &Plans::planChanged, this, &MainWindow::updateActions);
  connect(&m_session.jobs(), &Jobs::activityChanged, this, &MainWindow::updateActions);
  for (const auto signal : {&Selection::historyChanged, &Selection::focusChanged})
    connect(&m_session.selection(), signal, this, &MainWindow::updateActions);
  connect(&m_session.opened(), &OpenedModel::changed, this, &MainWindow::updateActions);
  connect(&m_session.runs(), &Runs::settingsChanged, this, &MainWindow::updateActions);
  connect(&m_session.runs(), &Runs::changed, this, [this] {
    if (m_session.runs().state() && m_session.runs().state()->isActive) showRun();
  });
  connect(&m_session.jobs(), &Jobs::ended, this, [this](Activity, bool hasSucceeded, const QString& sentence) {
    showEnd(hasSucceeded, sentence);
    // Without a solution, the search and its dead ends are shown.
    const auto& solved = m_session.plans().solved();
    const bool isSolved = !solved || solved->result.outcome == solve::Outcome::Solved;
    if (isSolved && !m_session.plans().isAboutConflicts()) return;
    raiseDock(QStringLiteral("Search"));
    raiseDock(QStringLiteral("Conflict"));
  });
  connect(&m_session.selection(), &Selection::hitsChanged, this, [this] {
    const std::size_t hits = m_session.selection().hits().size();
    m_hits->setText(m_search->text().isEmpty() ? QString() : countedText(hits, "hit"));
  });
}

MainWindow::~MainWindow() {
  m_session.shutdown();
  // The views may emit signals until the end, so they are deleted while the window still exists, not with the base
  // class.
  delete takeCentralWidget();
  for (const auto& [name, widget] : m_docks) delete widget;
  delete m_toolBar;
  delete m_solveSettings;
  delete m_status;
}

void MainWindow::showModel() {
  if (!m_session.opened().model()) return;
  m_stack->setCurrentWidget(m_views);
  m_sessionFile.clear();
  if (!m_hasShownModel) {
    m_hasShownModel = true;
    m_toolBar->show();
    if (!m_remembers || !restoreState(QSettings().value(kStateKey).toByteArray(), kLayoutVersion))
      applyPreset(Preset::Inspect);
  }
  if (!m_session.opened().sample()) remember(m_session.opened().source());
  updateTitle();
}

/// A message disappears with its subject.
void MainWindow::connectMessages() {
  connect(&m_session.notices(), &Notices::said, this, [this](const QString& text, Severity severity, About about) {
    // The run's verdict is shown above, so it is not repeated below.
    if (about == About::Outcome && m_run->isVisible()) return;
    m_message->show(text, severity, about);
  });
  // The message bar takes room from the lower edge of the picture, which neither moves nor rescales.
  // Layouts settle in several passes of the event loop, so the picture is fixed for all of them.
  auto* settled = new QTimer(this);
  settled->setSingleShot(true);
  settled->setInterval(kLayoutMs);
  connect(settled, &QTimer::timeout, this, [this] { m_graph->view().setStill(false); });
  connect(m_message, &MessageBar::aboutToPlace, this, [this] { m_graph->view().setStill(true); });
  connect(m_message, &MessageBar::placed, settled, qOverload<>(&QTimer::start));
  const auto withdrawOn = [this](const auto& part, auto signal, std::initializer_list<About> gone) {
    connect(&part, signal, this, [this, gone = std::vector(gone)] { m_message->withdraw(gone); });
  };
  withdrawOn(m_session.opened(), &OpenedModel::changed,
             {About::Moment, About::Model, About::Plan, About::Step, About::Run, About::Outcome});
  withdrawOn(m_session.plans(), &Plans::planChanged,
             {About::Moment, About::Plan, About::Step, About::Run, About::Outcome});
  withdrawOn(m_session.debugger(), &Debugger::stepChanged, {About::Step});
  withdrawOn(m_session.runs(), &Runs::changed, {About::Run, About::Outcome});
}

void MainWindow::updateTitle() {
  QString title = m_session.title();
  title.replace(QStringLiteral("[*]"), QStringLiteral("[*][*]"));  // Qt reads a single one as the mark of an unsaved
                                                                   // file
  setWindowTitle(title.isEmpty() ? QStringLiteral("Cleave") : QStringLiteral("%1 – Cleave").arg(title));
}

void MainWindow::showGraph() { showView(*m_graph); }
void MainWindow::showRun() { showView(*m_run); }

/// A view that is hidden with the focus passes the focus to the other view.
void MainWindow::showView(QWidget& view) {
  const QWidget* focused = QApplication::focusWidget();
  const bool hadFocus = focused && m_views->currentWidget()->isAncestorOf(focused);
  m_views->setCurrentWidget(&view);
  if (hadFocus) focusShownView();
  keepCentreHigh();
}

void MainWindow::focusShownView() { m_views->currentWidget()->setFocus(); }

void MainWindow::applyBusy() {
  const Activity activity = m_session.jobs().activity();
  const QString& drawing = m_session.files().drawing();
  const bool isBusy = activity != Activity::Idle || !m_survey.isEmpty() || !drawing.isEmpty();
  m_progress->setVisible(isBusy);
  m_cancel->setVisible(isBusy);
  m_progress->setRange(0, 0);
  switch (activity) {
    case Activity::Idle:
      if (isBusy) m_status->setText((m_survey.isEmpty() ? drawing : m_survey) + QStringLiteral("…"));
      break;
    case Activity::Opening: m_status->setText(QStringLiteral("Opening…")); break;
    case Activity::Solving:
      m_status->setText(QStringLiteral("Solving for %1…").arg(ranksText(m_session.settings().spec().ranks)));
      break;
    case Activity::Running: m_status->setText(QStringLiteral("Ranks are running…")); break;
  }
}

void MainWindow::updateProgress(const QString& stage, qint64 done, qint64 total) {
  if (m_session.jobs().activity() == Activity::Idle && m_survey.isEmpty()) return;
  if (total > 0) {
    m_progress->setRange(0, 1000);
    m_progress->setValue(static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total)));
    m_status->setText(
        QStringLiteral("%1: %2 of %3")
            .arg(stage, countText(static_cast<std::uint64_t>(done)), countText(static_cast<std::uint64_t>(total))));
  } else {
    m_progress->setRange(0, 0);
    m_status->setText(
        done > 0 ? QStringLiteral("%1: %2").arg(stage, countedText(static_cast<std::uint64_t>(done),
                                                                   QStringLiteral("try"), QStringLiteral("tries")))
                 : stage);
  }
}

void MainWindow::showDownload(const hub::DownloadState& state) {
  if (m_session.jobs().activity() == Activity::Idle) return;
  const double part =
      state.totalBytes > 0 ? static_cast<double>(state.doneBytes) / static_cast<double>(state.totalBytes) : 0;
  m_progress->setRange(0, 1000);
  m_progress->setValue(static_cast<int>(1000 * part));
  m_status->setText(toQ(state.text));
}

/// A failure in the message bar above is not repeated below.
void MainWindow::showEnd(bool hasSucceeded, const QString& sentence) {
  if (hasSucceeded || sentence != m_message->text()) {
    if (!sentence.isEmpty()) m_status->setText(sentence);
    return;
  }
  m_status->setText(m_session.opened().model() ? QString() : QStringLiteral("Open a model folder or a sample."));
  updateStep();  // the current step, if there is one
}

void MainWindow::updateStep() {
  const StepId count = m_session.debugger().stepCount();
  m_stepLabel->setText(
      count == 0 ? QStringLiteral("no search yet")
                 : QStringLiteral("step %1 of %2").arg(countText(m_session.debugger().wantedStep()), countText(count)));
  if (const auto& state = m_session.debugger().state(); state && m_session.jobs().activity() != Activity::Running)
    m_status->setText(state->eventText);
  updateActions();
}

void MainWindow::updateSettings() {
  const auto& settings = m_session.settings().spec();
  const QSignalBlocker a(m_ranks), b(m_engine), c(m_sequenceParallel);
  QAction* solve = action(QStringLiteral("solve"));
  // As wide as the longer text, so that its neighbours do not move under the pointer.
  if (QWidget* button = m_toolBar->widgetForAction(solve); button && button->minimumWidth() == 0) {
    solve->setIconText(QStringLiteral("Solve again"));
    button->setMinimumWidth(button->sizeHint().width());
  }
  solve->setIconText(m_session.plans().isOutdated() ? QStringLiteral("Solve again") : QStringLiteral("Solve"));
  solve->setToolTip(m_session.plans().isOutdated()
                        ? QStringLiteral("The settings have changed since the plan shown (Ctrl+Return)")
                        : QStringLiteral("Search for a plan (Ctrl+Return)"));
  m_ranks->setValue(settings.ranks);
  m_ranks->setSuffix(settings.ranks == 1 ? QStringLiteral(" rank") : QStringLiteral(" ranks"));
  m_engine->setCurrentIndex(m_engine->findData(int(settings.engine)));
  m_sequenceParallel->setCurrentIndex(m_sequenceParallel->findData(int(settings.sequenceParallel)));
  action(QStringLiteral("run"))
      ->setText(settings.ranks == 1 ? QStringLiteral("Run on 1 Rank")
                                    : QStringLiteral("Run on %1 Ranks").arg(settings.ranks));
}

/// Settings of a sample, plan or recording are not the user's choice for models.
void MainWindow::rememberSettings() {
  if (m_remembers && !m_session.settings().isBorrowed()) saveSolveSettings(m_session.settings());
}

/// The progress of the running job, else of a picture that is drawn in the background.
void MainWindow::stopWork() {
  const bool isBusy = m_session.jobs().activity() != Activity::Idle || !m_survey.isEmpty();
  isBusy ? m_session.jobs().stop() : m_session.files().stopDrawing();
}

void MainWindow::escape() {
  const bool isSurveying = m_session.answers().isPending(AnswerKind::WorldSizes) ||
                           m_session.answers().isPending(AnswerKind::Front) ||
                           m_session.answers().isPending(AnswerKind::WhyNot);
  if (m_session.jobs().activity() != Activity::Idle || isSurveying) return m_session.jobs().stop();
  if (!m_session.files().drawing().isEmpty()) return m_session.files().stopDrawing();
  if (m_search->hasFocus() || !m_session.selection().hits().empty()) {
    m_search->clear();
    focusShownView();
    return;
  }
  m_session.selection().clearFocus();
}

void MainWindow::setDarkTheme(bool isDark) {
  applyTheme(isDark);
  action(isDark ? QStringLiteral("dark") : QStringLiteral("light"))->setChecked(true);
  if (m_remembers) QSettings().setValue(kDarkKey, isDark);
}

void MainWindow::setSearchText(const QString& text) { m_search->setText(text); }

bool MainWindow::isSettled() const { return m_session.isIdle() && m_graph->isSettled(); }

/// A shrinking window first shrinks its centre, until the graph has no room left. Then the docks shrink.
void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  keepCentreWide();
  keepCentreHigh();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (m_remembers) {
    QSettings settings;
    settings.setValue(kGeometryKey, saveGeometry());
    if (m_hasShownModel) settings.setValue(kStateKey, saveState(kLayoutVersion));
  }
  hide();  // work that does not end at once ends in the background
  m_session.shutdown();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls() && event->mimeData()->urls().front().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  if (event->mimeData()->hasUrls()) openPath(event->mimeData()->urls().front().toLocalFile());
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && m_toolBar) updateIcons();
}

}  // namespace cleave::views
