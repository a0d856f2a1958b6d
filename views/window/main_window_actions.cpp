// Menus, toolbar and status bar.
#include <QActionGroup>
#include <QApplication>
#include <QComboBox>
#include <QDockWidget>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMessageBox>
#include <QProgressBar>
#include <QSpinBox>
#include <QStatusBar>
#include <QToolBar>
#include <QToolButton>

#include "pipeline/source/hub_model.h"
#include "views/base/icons.h"
#include "views/base/text.h"
#include "views/run/run_view.h"
#include "views/widgets/panel_parts.h"
#include "views/window/capture_dialog.h"
#include "views/window/graph_area.h"
#include "views/window/hub_dialog.h"
#include "views/window/keys_text.h"
#include "views/window/main_window.h"
#include "views/window/message_bar.h"
#include "views/window/solve_settings.h"

namespace cleave::views {

namespace {
constexpr int kMaxRanks = 64;

const std::pair<const char*, Glyph> kActionGlyphs[] = {{"open", Glyph::Open},
                                                       {"solve", Glyph::Solve},
                                                       {"first", Glyph::First},
                                                       {"previous", Glyph::Previous},
                                                       {"next", Glyph::Next},
                                                       {"last", Glyph::Last},
                                                       {"next-conflict", Glyph::Conflict},
                                                       {"run", Glyph::Run},
                                                       {"stop", Glyph::Stop},
                                                       {"into", Glyph::Into},
                                                       {"out", Glyph::Out}};

QKeySequence keyOf(const char* text) { return QKeySequence(QString::fromLatin1(text)); }

}  // namespace

QAction* MainWindow::addAction(QMenu* menu, const QString& name, const QString& text, const QKeySequence& key,
                               std::function<void()> run) {
  QAction* action = menu->addAction(text);
  action->setShortcut(key);
  action->setObjectName(name);
  connect(action, &QAction::triggered, this, std::move(run));
  m_actions[name] = action;
  return action;
}

void MainWindow::makeMenus() {
  const auto key = keyOf;
  makeFileMenu();
  QMenu* model = menuBar()->addMenu(QStringLiteral("&Model"));
  addAction(model, QStringLiteral("capture"), QStringLiteral("&Capture Options…"), {}, [this] { askForCapture(); });
  addAction(model, QStringLiteral("add-pin"), QStringLiteral("&Pin a Placement…"), key("Ctrl+P"),
            [this] { askForPin(); });
  QMenu* pins = model->addMenu(QStringLiteral("P&ins"));
  connect(pins, &QMenu::aboutToShow, this, [this, pins] { fillPinsMenu(pins); });
  model->addSeparator();
  QAction* undo = m_session.undoStack().createUndoAction(this, QStringLiteral("&Undo"));
  undo->setShortcut(QKeySequence::Undo);
  QAction* redo = m_session.undoStack().createRedoAction(this, QStringLiteral("&Redo"));
  QList<QKeySequence> redoKeys = QKeySequence::keyBindings(QKeySequence::Redo);
  if (const QKeySequence other(Qt::CTRL | Qt::Key_Y); !redoKeys.contains(other)) redoKeys << other;
  redo->setShortcuts(redoKeys);
  model->addAction(undo);
  model->addAction(redo);

  makeSolveMenu();
  makeDebugMenu();
  QMenu* run = menuBar()->addMenu(QStringLiteral("&Run"));
  addAction(run, QStringLiteral("run"), QStringLiteral("Run on 2 Ranks"), key("Ctrl+Shift+R"), [this] { runRanks(); });
  addAction(run, QStringLiteral("run-cluster"), QStringLiteral("Run on a &Cluster…"), {},
            [this] { m_run->showCluster(); });
  addAction(run, QStringLiteral("first-difference"), QStringLiteral("Find the First &Difference"), key("Ctrl+D"),
            [this] {
              showRun();
              m_session.runs().findFirstDifference();
            });
  addAction(run, QStringLiteral("stop-run"), QStringLiteral("&Stop"), {}, [this] { m_session.jobs().stop(); });
  makeViewMenus();

  auto* escape = new QAction(this);
  escape->setShortcut(Qt::Key_Escape);
  connect(escape, &QAction::triggered, this, &MainWindow::escape);
  QWidget::addAction(escape);
}

void MainWindow::makeSolveMenu() {
  QMenu* solve = menuBar()->addMenu(QStringLiteral("&Solve"));
  addAction(solve, QStringLiteral("solve"), QStringLiteral("&Solve"), keyOf("Ctrl+Return"),
            [this] { m_session.solve(); });
  addAction(solve, QStringLiteral("stop"), QStringLiteral("S&top"), {}, [this] { m_session.jobs().stop(); });
  m_solveSettings = new SolveSettings(m_session.opened(), m_session.settings(), this);
  connect(m_solveSettings, &SolveSettings::changedByUser, this, &MainWindow::rememberSettings);
  addAction(solve, QStringLiteral("settings"), QStringLiteral("S&ettings…"), keyOf("Ctrl+,"), [this] {
    m_solveSettings->show();
    m_solveSettings->raise();
    m_solveSettings->activateWindow();
  });
  solve->addSeparator();
  addAction(solve, QStringLiteral("world-sizes"), QStringLiteral("Which &World Sizes Work"), keyOf("Ctrl+W"), [this] {
    raiseDock(QStringLiteral("Pre-flight"));
    m_session.answers().computeWorldSizes();
  });
  addAction(solve, QStringLiteral("front"), QStringLiteral("Weigh &Time against Memory"), keyOf("Ctrl+M"), [this] {
    raiseDock(QStringLiteral("Pareto"));
    m_session.answers().computeFront();
  });
  solve->addSeparator();
  addAction(solve, QStringLiteral("other-branch"), QStringLiteral("Show the &Other Branch"), keyOf("Ctrl+B"),
            [this] { m_session.plans().showBranch(1 - m_session.plans().shownBranch()); });
  addAction(solve, QStringLiteral("keep-branch"), QStringLiteral("&Keep B"), {},
            [this] { m_session.plans().keepBranch(); });
  addAction(solve, QStringLiteral("drop-branch"), QStringLiteral("&Drop B"), {},
            [this] { m_session.plans().dropBranch(); });
}

void MainWindow::makeDebugMenu() {
  const auto key = keyOf;
  QMenu* debug = menuBar()->addMenu(QStringLiteral("&Debug"));
  addAction(debug, QStringLiteral("next"), QStringLiteral("&Next Event"), key("F10"),
            [this] { m_session.debugger().stepBy(+1); });
  addAction(debug, QStringLiteral("previous"), QStringLiteral("&Previous Event"), key("Shift+F10"),
            [this] { m_session.debugger().stepBy(-1); });
  addAction(debug, QStringLiteral("into"), QStringLiteral("&Into the Next Decision"), key("F11"),
            [this] { m_session.debugger().stepInto(); });
  addAction(debug, QStringLiteral("out"), QStringLiteral("&Out to the Decision Before"), key("Shift+F11"),
            [this] { m_session.debugger().stepOut(); });
  addAction(debug, QStringLiteral("continue"), QStringLiteral("&Run to Breakpoint"), key("F5"),
            [this] { m_session.debugger().runToBreakpoint(true); });
  addAction(debug, QStringLiteral("back"), QStringLiteral("Run &Back to Breakpoint"), key("Shift+F5"),
            [this] { m_session.debugger().runToBreakpoint(false); });
  debug->addSeparator();
  addAction(debug, QStringLiteral("next-conflict"), QStringLiteral("Next &Conflict"), key("F8"), [this] {
    raiseDock(QStringLiteral("Conflict"));
    m_session.debugger().nextConflict();
  });
  addAction(debug, QStringLiteral("previous-conflict"), QStringLiteral("Previous C&onflict"), key("Shift+F8"), [this] {
    raiseDock(QStringLiteral("Conflict"));
    m_session.debugger().previousConflict();
  });
  addAction(debug, QStringLiteral("next-change"), QStringLiteral("Next C&hange of the Selected Value"), key("Ctrl+F10"),
            [this] { m_session.debugger().toNextChange(m_session.selection().focus().node); });
  addAction(debug, QStringLiteral("breakpoint"), QStringLiteral("&Toggle Breakpoint"), key("F9"), [this] {
    const graph::NodeId node = m_session.selection().focus().node;
    if (node.isValid()) return m_session.debugger().toggleBreakpoint(node);
    m_message->show(QStringLiteral("First select the node where the search should stop."), Severity::Info);
  });
  debug->addSeparator();
  addAction(debug, QStringLiteral("first"), QStringLiteral("&First Step"), key("Home"),
            [this] { m_session.debugger().seek(0); });
  addAction(debug, QStringLiteral("last"), QStringLiteral("&Last Step"), key("End"),
            [this] { m_session.debugger().seek(m_session.debugger().stepCount()); });
}

void MainWindow::makeViewMenus() {
  const auto key = keyOf;
  QMenu* view = menuBar()->addMenu(QStringLiteral("&View"));
  addAction(view, QStringLiteral("focus-back"), QStringLiteral("Focus &Back"), key("Alt+Left"),
            [this] { m_session.selection().goBack(); });
  addAction(view, QStringLiteral("focus-forward"), QStringLiteral("Focus &Forward"), key("Alt+Right"),
            [this] { m_session.selection().goForward(); });
  addAction(view, QStringLiteral("find"), QStringLiteral("F&ind"), QKeySequence::Find, [this] {
    m_search->setFocus();
    m_search->selectAll();
  });
  view->addSeparator();
  m_graph->addActions(*view);
  view->addSeparator();
  auto* themes = new QActionGroup(this);
  addAction(view, QStringLiteral("light"), QStringLiteral("&Light Theme"), {}, [this] { setDarkTheme(false); });
  addAction(view, QStringLiteral("dark"), QStringLiteral("&Dark Theme"), {}, [this] { setDarkTheme(true); });
  for (const char* name : {"light", "dark"}) {
    action(QLatin1String(name))->setCheckable(true);
    themes->addAction(action(QLatin1String(name)));
  }
  action(QStringLiteral("light"))->setChecked(true);

  QMenu* window = menuBar()->addMenu(QStringLiteral("&Window"));
  addAction(window, QStringLiteral("preset-inspect"), QStringLiteral("Preset &Inspect"), key("Ctrl+1"),
            [this] { applyPreset(Preset::Inspect); });
  addAction(window, QStringLiteral("preset-debug"), QStringLiteral("Preset &Debug"), key("Ctrl+2"),
            [this] { applyPreset(Preset::Debug); });
  addAction(window, QStringLiteral("preset-run"), QStringLiteral("Preset &Run"), key("Ctrl+3"),
            [this] { applyPreset(Preset::Run); });
  addAction(window, QStringLiteral("other-view"), QStringLiteral("&Graph or Run"), key("Ctrl+4"),
            [this] { m_graph->isVisible() ? showRun() : showGraph(); });
  window->addSeparator();
  for (const auto& [name, dock] : m_docks) window->addAction(dock->toggleViewAction());

  QMenu* help = menuBar()->addMenu(QStringLiteral("&Help"));
  addAction(help, QStringLiteral("keys"), QStringLiteral("&Keys"), QKeySequence::HelpContents, [this] { showKeys(); });
  addAction(help, QStringLiteral("about"), QStringLiteral("&About Cleave"), {}, [this] { showAbout(); });
}

void MainWindow::makeToolBar() {
  m_toolBar = addToolBar(QStringLiteral("Main"));
  m_toolBar->setObjectName(QStringLiteral("Main"));
  m_toolBar->setMovable(false);
  m_toolBar->setIconSize({16, 16});
  m_toolBar->setContextMenuPolicy(Qt::PreventContextMenu);
  m_stepLabel = new QLabel;
  m_stepLabel->setMinimumWidth(fontMetrics().horizontalAdvance(QStringLiteral("step 00,000 of 00,000")) + 12);
  m_stepLabel->setAlignment(Qt::AlignCenter);
  m_search = new QLineEdit;
  m_search->setObjectName(QStringLiteral("search"));
  m_search->setPlaceholderText(QStringLiteral("Search: op:mm axis:1 in:layers.3 shape:*x4096"));
  m_search->setAccessibleName(QStringLiteral("Search the graph"));
  m_search->setToolTip(QStringLiteral(
      "Words, op:mm, axis:1, in:layers.3, shape:*x4096, source:norm.py, /regex/. Enter goes to the next hit, "
      "Shift+Enter to the one "
      "before."));
  m_search->setClearButtonEnabled(true);
  // A line of code is long, so the popup is as wide as the hint if there is room.
  m_search->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  m_search->setMaximumWidth(fontMetrics().horizontalAdvance(m_search->placeholderText()) + 60);
  m_search->setMinimumWidth(120);
  m_hits = new QLabel;

  m_toolBar->addAction(action(QStringLiteral("open")));
  m_toolBar->addSeparator();
  m_toolBar->addAction(action(QStringLiteral("solve")));
  addSolveControls();
  m_toolBar->addSeparator();
  for (const char* name : {"first", "previous", "next", "last", "next-conflict"})
    m_toolBar->addAction(action(QLatin1String(name)));
  m_toolBar->addWidget(m_stepLabel);
  m_toolBar->addSeparator();
  m_toolBar->addAction(action(QStringLiteral("run")));
  m_toolBar->addAction(action(QStringLiteral("stop")));
  auto* searching = new QWidget;
  auto* row = new QHBoxLayout(searching);
  row->setContentsMargins(0, 0, 0, 0);
  row->addStretch(1);
  row->addWidget(m_hits);
  row->addWidget(m_search, 100);  // the search box takes the room up to its maximum width, the stretch takes the rest
  m_toolBar->addWidget(searching);
  for (const char* name : {"solve", "run"})
    if (auto* button = qobject_cast<QToolButton*>(m_toolBar->widgetForAction(action(QLatin1String(name)))))
      button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  action(QStringLiteral("open"))->setIconText(QStringLiteral("Open"));

  connect(m_search, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (const auto found = m_session.selection().find(text); !found) m_hits->setText(QStringLiteral("?"));
  });
  connect(m_search, &QLineEdit::returnPressed, this, [this] {
    if (const auto found = m_session.selection().hits().empty() ? m_session.selection().find(m_search->text())
                                                                : Result<std::size_t>(1);
        !found)
      return m_message->show(toQ(found.error().message), Severity::Failure);
    m_session.selection().walkHits(!(QApplication::keyboardModifiers() & Qt::ShiftModifier));
  });
}

void MainWindow::addSolveControls() {
  m_ranks = new QSpinBox;
  m_ranks->setRange(1, kMaxRanks);
  m_ranks->setToolTip(QStringLiteral("Number of tensor-parallel ranks"));
  m_ranks->setAccessibleName(QStringLiteral("Ranks"));
  m_engine = new QComboBox;
  const std::pair<solve::Engine, QString> engines[] = {
      {solve::Engine::Optimal,
       QStringLiteral("Proved fastest plan by the cost model; with slack, the one with the least memory within it")},
      {solve::Engine::Learning, QStringLiteral("First valid plan; learns from each conflict")},
      {solve::Engine::Reference, QStringLiteral("First valid plan, searched as in Optimum")}};
  for (const auto& [engine, what] : engines) {
    m_engine->addItem(toQ(solve::toText(engine)), int(engine));
    m_engine->setItemData(m_engine->count() - 1, what, Qt::ToolTipRole);
  }
  m_engine->setToolTip(
      QStringLiteral("Search engine: optimal finds the fastest plan, learning and reference the first valid one"));
  m_engine->setAccessibleName(QStringLiteral("Engine"));
  m_sequenceParallel = new QComboBox;
  m_sequenceParallel->addItem(QStringLiteral("sequence parallel: off"), int(rules::SequenceParallel::Off));
  m_sequenceParallel->addItem(QStringLiteral("sequence parallel: on"), int(rules::SequenceParallel::On));
  m_sequenceParallel->addItem(QStringLiteral("sequence parallel: auto"), int(rules::SequenceParallel::Auto));
  m_sequenceParallel->setToolTip(
      QStringLiteral("Split activations on the sequence dimension between the split layers"));
  m_sequenceParallel->setAccessibleName(QStringLiteral("Sequence parallelism"));
  for (QWidget* control :
       {static_cast<QWidget*>(m_ranks), static_cast<QWidget*>(m_engine), static_cast<QWidget*>(m_sequenceParallel)})
    m_toolBar->addWidget(control);
  m_toolBar->addAction(action(QStringLiteral("settings")));
  action(QStringLiteral("settings"))->setIconText(QStringLiteral("Settings…"));
  action(QStringLiteral("settings"))
      ->setToolTip(QStringLiteral("Device, training, memory budget, candidate set (Ctrl+,)"));
  connect(m_ranks, &QSpinBox::valueChanged, this, [this](int ranks) {
    m_session.settings().setRanks(ranks);
    rememberSettings();
  });
  connect(m_engine, &QComboBox::currentIndexChanged, this, [this] {
    m_session.settings().setEngine(static_cast<solve::Engine>(m_engine->currentData().toInt()));
    rememberSettings();
  });
  connect(m_sequenceParallel, &QComboBox::currentIndexChanged, this, [this] {
    const auto mode = static_cast<rules::SequenceParallel>(m_sequenceParallel->currentData().toInt());
    m_session.settings().change([mode](spec::PlanSpec& spec) { spec.sequenceParallel = mode; });
    rememberSettings();
  });
}

void MainWindow::updateBranchActions() {
  const std::size_t count = m_session.plans().branches().size();
  for (const char* name : {"other-branch", "keep-branch", "drop-branch"})
    action(QLatin1String(name))->setEnabled(count > 1);
  // A new second plan: the diff is shown first.
  if (count > 1 && m_branchCount < 2 && m_session.plans().plan() && !m_run->isVisible())
    raiseDock(QStringLiteral("Diff"));
  m_branchCount = count;
}

void MainWindow::makeStatusBar() {
  m_status = new ElidedLabel(QStringLiteral("Open a model folder or a sample."));
  m_status->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_status->setIndent(6);
  m_progress = new QProgressBar;
  m_progress->setFixedWidth(160);
  m_progress->setTextVisible(false);
  m_progress->setFixedHeight(10);
  m_progress->hide();
  m_cancel = new QToolButton;
  m_cancel->setText(QStringLiteral("Stop"));
  m_cancel->setToolTip(QStringLiteral("Stop (Esc)"));
  m_cancel->hide();
  statusBar()->setSizeGripEnabled(false);
  statusBar()->addWidget(m_status, 1);
  statusBar()->addPermanentWidget(m_progress);
  statusBar()->addPermanentWidget(m_cancel);
  connect(m_cancel, &QToolButton::clicked, this, &MainWindow::stopWork);
}

void MainWindow::updateIcons() {
  for (const auto& [name, glyph] : kActionGlyphs) action(QLatin1String(name))->setIcon(glyphIcon(glyph, palette()));
  setWindowIcon(glyphIcon(Glyph::App, palette()));
}

void MainWindow::updateActions() {
  const bool hasModel = m_session.opened().model() != nullptr;
  const bool hasTrace = m_session.debugger().trace() != nullptr;
  const bool isIdle = m_session.jobs().activity() == Activity::Idle;
  const StepId step = m_session.debugger().wantedStep(), count = m_session.debugger().stepCount();
  const auto enable = [this](std::initializer_list<const char*> names, bool on) {
    for (const char* name : names) action(QLatin1String(name))->setEnabled(on);
  };
  enable({"capture", "add-pin", "find", "save-picture", "save-session", "save-session-as"}, hasModel);
  enable({"solve"}, hasModel && m_session.jobs().activity() != Activity::Running);
  enable({"run"}, hasModel && isIdle && m_session.runs().whyNot(m_session.runs().settings()).isEmpty());
  enable({"first-difference"}, m_session.plans().plan() != nullptr && isIdle);
  enable({"other-view"}, hasModel);
  enable({"run-cluster"}, m_session.plans().plan() != nullptr);
  enable({"stop", "stop-run"}, !isIdle);
  enable({"next", "last", "into", "continue"}, hasTrace && step < count);
  enable({"previous", "first", "out", "back"}, hasTrace && step > 0);
  enable({"next-conflict", "previous-conflict", "save-trace"}, hasTrace);
  enable({"next-change", "breakpoint"}, hasModel && m_session.selection().focus().node.isValid());
  enable({"export-plan"}, m_session.plans().plan() != nullptr);
  enable({"world-sizes"}, hasModel);
  enable({"front"}, m_session.plans().solved() != nullptr);
  enable({"focus-back"}, m_session.selection().canGoBack());
  enable({"focus-forward"}, m_session.selection().canGoForward());
}

void MainWindow::fillPinsMenu(QMenu* menu) {
  menu->clear();
  for (const solve::Pin& pin : m_session.settings().pins()) {
    const QString text = toQ(pin.text);
    connect(menu->addAction(QStringLiteral("Lift %1").arg(text)), &QAction::triggered, this,
            [this, text] { m_session.settings().removePin(text); });
  }
  if (menu->isEmpty()) menu->addAction(QStringLiteral("Nothing is pinned"))->setEnabled(false);
}

void MainWindow::runRanks() {
  const QString refusal = m_run->run(m_session.settings().spec().ranks);
  if (refusal.isEmpty()) return;
  showRun();
  m_message->show(refusal, Severity::Failure);
}

void MainWindow::askForWeights(const RunSettings& settings) {
  const auto model = m_session.opened().model();
  if (m_runsAtRandom.lock() != model) {
    if (!model->exported) return askForHubWeights(settings);
    const auto options = views::askForWeights(*model, this);
    if (!options) return;
    if (!options->weights.empty()) return m_session.recaptureAndRun(*options, settings);
    m_runsAtRandom = model;
  }
  m_run->start();
}

/// Asks the Hub for the size of the weights before the dialog.
void MainWindow::askForHubWeights(const RunSettings& settings) {
  const std::weak_ptr<const pipeline::Model> model = m_session.opened().model();
  const std::string folder = m_session.opened().model()->info.source;
  m_status->setText(QStringLiteral("Reading the size of the weights…"));
  m_session.files().worker().post(QStringLiteral("weights"), QStringLiteral("Reading the size of the weights"),
                                  [=, this](const Progress& progress) -> Worker::Completion {
                                    const auto announced = pipeline::announceHubWeights(folder, progress);
                                    return [=, this] {
                                      if (model.lock() != m_session.opened().model()) return;  // another model is open
                                      m_status->clear();
                                      const auto choice = views::askForHubWeights(m_session.title(), announced, this);
                                      if (!choice || model.lock() != m_session.opened().model()) return;
                                      if (*choice == WeightsChoice::Fetch)
                                        return m_session.fetchWeightsAndRun(settings);
                                      m_runsAtRandom = model;
                                      m_run->start();
                                    };
                                  });
}

void MainWindow::askForPin() {
  const QString text = QInputDialog::getText(
      this, QStringLiteral("Pin a placement"),
      QStringLiteral("NAME=PLACEMENT for a value, LAYER=STRATEGY for a layer:\n%1;\n"
                     "== means that strategy alone, != forbids, * matches any characters:")
          .arg(toQ(solve::strategyWords())),
      QLineEdit::Normal,
      m_session.selection().focus().node.isValid()
          ? toQ(graph::layerName(*m_session.opened().graph(), m_session.selection().focus().node)) + QLatin1Char('=')
          : QString());
  if (text.isEmpty()) return;
  if (const auto added = m_session.settings().addPin(text); !added)
    m_message->show(toQ(added.error().message), Severity::Failure);
}

void MainWindow::askForCapture() {
  const auto& model = m_session.opened().model();
  if (!model) return;
  const auto input =
      model->exported ? askForSizes(*model, this) : views::askForCapture(m_session.opened().input(), model->info, this);
  if (input) m_session.recapture(*input);
}

void MainWindow::showKeys() { QMessageBox::information(this, QStringLiteral("Keys"), keysText(*menuBar())); }

void MainWindow::showAbout() {
  QMessageBox::about(
      this, QStringLiteral("About Cleave"),
      QStringLiteral("<b>Cleave %1</b><p>Shows how a Transformer splits across GPUs, why, and whether it works.</p>")
          .arg(QApplication::applicationVersion()));
}

}  // namespace cleave::views
