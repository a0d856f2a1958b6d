// The docks: which panels there are, how they follow the session, and the presets.
#include <QDockWidget>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTime>
#include <QToolBar>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "views/base/text.h"
#include "views/panels/diff_panel.h"
#include "views/panels/explain_panels.h"
#include "views/panels/layers_model.h"
#include "views/panels/modules_model.h"
#include "views/panels/nodes_model.h"
#include "views/panels/pareto_plot.h"
#include "views/panels/preflight_panel.h"
#include "views/panels/run_panel.h"
#include "views/panels/search_panel.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"
#include "views/window/change_marks.h"
#include "views/window/main_window.h"

namespace cleave::views {

namespace {
constexpr int kTablesRefreshMs = 60;  // tables may lag behind the canvas while scrubbing

const QString kModules = QStringLiteral("Modules"), kDecision = QStringLiteral("Decision"),
              kConflict = QStringLiteral("Conflict"), kSearch = QStringLiteral("Search"),
              kBreakpoints = QStringLiteral("Breakpoints"), kLayers = QStringLiteral("Layers"),
              kNodes = QStringLiteral("Nodes"), kRun = QStringLiteral("Run"), kLog = QStringLiteral("Log"),
              kPreflight = QStringLiteral("Pre-flight"), kPareto = QStringLiteral("Pareto"),
              kDiff = QStringLiteral("Diff");
}  // namespace

QDockWidget* MainWindow::addDock(const QString& name, QWidget* content, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(tr(name.toUtf8().constData()), this);
  dock->setObjectName(name);
  dock->setWidget(content);
  addDockWidget(area, dock);
  m_docks[name] = dock;
  return dock;
}

void MainWindow::makeDocks() {
  addDock(kModules, makeModulesPanel(), Qt::LeftDockWidgetArea);
  Session& s = m_session;
  addDock(kDecision,
          new DecisionPanel(s.opened(), s.settings(), s.plans(), s.debugger(), s.selection(), s.answers(), s.notices()),
          Qt::RightDockWidgetArea);
  addDock(kConflict, new ConflictCard(s.opened(), s.plans(), s.debugger(), s.selection(), s.answers()),
          Qt::RightDockWidgetArea);
  addDock(kPreflight, new PreflightPanel(s.opened(), s.settings(), s.answers(), s.selection()),
          Qt::RightDockWidgetArea);
  addDock(kPareto, new ParetoPanel(s.opened(), s.settings(), s.plans(), s.answers(), s.jobs()),
          Qt::RightDockWidgetArea);
  addDock(kDiff, new DiffPanel(s.opened(), s.settings(), s.plans(), s.jobs(), s.selection()), Qt::RightDockWidgetArea);
  addDock(kSearch, new SearchPanel(s.debugger(), s.plans(), s.selection()), Qt::BottomDockWidgetArea);
  addDock(kBreakpoints, new BreakpointsPanel(s.opened(), s.debugger(), s.selection(), s.notices()),
          Qt::BottomDockWidgetArea);
  addDock(kLayers, makeLayersPanel(), Qt::BottomDockWidgetArea);
  addDock(kNodes, makeNodesPanel(), Qt::BottomDockWidgetArea);
  m_runPanel = new RunPanel(s.opened(), s.settings(), s.plans(), s.runs(), s.jobs(), s.files());
  addDock(kRun, m_runPanel, Qt::BottomDockWidgetArea);
  addDock(kLog, makeLogPanel(), Qt::BottomDockWidgetArea);
}

void MainWindow::applyPreset(Preset preset) {
  for (const auto& [name, widget] : m_docks) {
    widget->setFloating(false);
    removeDockWidget(widget);
  }
  addDockWidget(Qt::LeftDockWidgetArea, dock(kModules));
  arrangeRight(preset);
  addDockWidget(Qt::BottomDockWidgetArea, dock(kSearch));
  QDockWidget* last = dock(kSearch);
  for (const QString& name : {kLayers, kNodes, kBreakpoints, kRun, kLog}) {
    if (preset == Preset::Run && name == kRun) continue;
    tabifyDockWidget(last, dock(name));
    last = dock(name);
  }
  for (const auto& [name, widget] : m_docks) widget->show();
  resizeDocks({dock(kModules), preset == Preset::Run ? dock(kRun) : dock(kDecision)},
              {250, preset == Preset::Run ? 420 : 340}, Qt::Horizontal);
  resizeDocks({dock(kSearch)}, {preset == Preset::Debug ? 270 : 240}, Qt::Vertical);
  dock(preset == Preset::Inspect ? kLayers : kSearch)->raise();
  dock(kDecision)->raise();
}

/// Inspect: one group at full height, for panels that are read. Debug: the decision above the conflict. Run: the ranks
/// take most of the room.
void MainWindow::arrangeRight(Preset preset) {
  addDockWidget(Qt::RightDockWidgetArea, dock(kDecision));
  QDockWidget* lower = nullptr;
  if (preset != Preset::Inspect) {
    lower = dock(preset == Preset::Debug ? kConflict : kRun);
    addDockWidget(Qt::RightDockWidgetArea, lower);
    splitDockWidget(dock(kDecision), lower, Qt::Vertical);
  }
  QDockWidget* last = preset == Preset::Debug ? lower : dock(kDecision);
  for (const QString& name : {kConflict, kPreflight, kPareto, kDiff}) {
    if (dock(name) == lower) continue;
    tabifyDockWidget(last, dock(name));
    last = dock(name);
  }
  if (!lower) return;
  resizeDocks({dock(kDecision), lower}, {preset == Preset::Run ? 180 : 460, 480}, Qt::Vertical);
  lower->raise();
}

bool MainWindow::raiseDock(const QString& name) {
  const auto found = std::find_if(m_docks.begin(), m_docks.end(),
                                  [&](const auto& dock) { return dock.first.compare(name, Qt::CaseInsensitive) == 0; });
  if (found == m_docks.end()) return false;
  found->second->show();
  found->second->raise();
  return true;
}

QWidget* MainWindow::makeModulesPanel() {
  auto* panel = new QWidget;
  auto* model = new ModulesModel(panel);
  auto* proxy = new WordFilterModel(panel);
  proxy->setRecursiveFilteringEnabled(true);
  auto* marks = new ChangeMarks(m_session.opened(), m_session.plans(), model, panel);
  proxy->setSourceModel(marks);
  auto* tree = new QTreeView;
  tree->setModel(proxy);
  tree->setItemDelegate(new ChipDelegate(tree));
  tree->setUniformRowHeights(true);
  tree->setAccessibleName(tr("Modules"));
  tree->setIndentation(10);
  tree->header()->setStretchLastSection(false);
  tree->header()->setSectionResizeMode(ModulesModel::Name, QHeaderView::Stretch);
  tree->header()->setSectionResizeMode(ModulesModel::Split, QHeaderView::Fixed);
  tree->header()->setSectionResizeMode(ModulesModel::Operators, QHeaderView::Fixed);
  tree->header()->resizeSection(ModulesModel::Split, 58);
  tree->header()->resizeSection(ModulesModel::Operators, 42);
  auto* filter = new QLineEdit;
  filter->setPlaceholderText(tr("Filter modules"));
  filter->setAccessibleName(filter->placeholderText());
  filter->setClearButtonEnabled(true);
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 4, 0, 0);
  layout->setSpacing(4);
  auto* bar = new QVBoxLayout;
  bar->setContentsMargins(4, 0, 4, 0);
  bar->addWidget(filter);
  layout->addLayout(bar);
  layout->addWidget(tree, 1);

  connect(filter, &QLineEdit::textChanged, this, [=](const QString& text) {
    proxy->setWords(text);
    if (!text.isEmpty()) tree->expandAll();
  });
  connect(&m_session.opened(), &OpenedModel::changed, panel, [=, this] {
    model->setGraph(m_session.opened().model() ? m_session.opened().model()->aten : nullptr);
    tree->expandToDepth(1);
  });
  const auto isShowing = std::make_shared<bool>(false);  // the tree follows the focus: not the user's choice
  connect(tree->selectionModel(), &QItemSelectionModel::currentRowChanged, panel,
          [=, this](const QModelIndex& current) {
            if (!*isShowing && tree->hasFocus() && current.isValid()) followRow(current);
          });
  connect(tree, &QTreeView::clicked, panel, [this](const QModelIndex& index) { followRow(index); });
  const auto showState = [=, this] { model->setState(m_session.debugger().state()); };
  (new RefreshTimer(panel, showState, kTablesRefreshMs))
      ->follow(m_session.debugger(), {&Debugger::stepChanged})
      .follow(m_session.opened(), {&OpenedModel::changed});
  const auto showFocus = [=, this] {
    const QModelIndex module = model->indexOf(m_session.selection().focus().scope);
    const QModelIndex index = proxy->mapFromSource(marks->mapFromSource(module));
    *isShowing = true;
    tree->setCurrentIndex(index);
    if (index.isValid()) tree->scrollTo(index);
    *isShowing = false;
  };
  (new RefreshTimer(panel, showFocus, kTablesRefreshMs))->follow(m_session.selection(), {&Selection::focusChanged});
  return panel;
}

void MainWindow::followRow(const QModelIndex& row) {
  if (const auto target = targetOf(row)) m_session.selection().follow(*target);
}

void MainWindow::showFocusedRow(TablePanel& table) {
  const NodeId node = m_session.selection().focus().node;
  table.showTarget(node.isValid() ? std::optional<Target>(node) : std::nullopt);
}

QWidget* MainWindow::makeLayersPanel() {
  auto* model = new LayersModel(this);
  auto* panel = new TablePanel(new ChangeMarks(m_session.opened(), m_session.plans(), model, this), tr("Filter layers"),
                               tr("The plan's layers stand here once the model is solved: which are split on columns, "
                                  "rows or the vocabulary, and what a rank holds."));
  const std::pair<int, int> widths[] = {{LayersModel::Name, 235},
                                        {LayersModel::Kind, 78},
                                        {LayersModel::Axis, 62},
                                        {LayersModel::StrategyColumn, 80},
                                        {LayersModel::Gather, 56},
                                        {LayersModel::InputParallel, 56},
                                        {LayersModel::SequenceParallelColumn, 32},
                                        {LayersModel::Weight, 74},
                                        {LayersModel::Local, 80}};
  for (const auto& [column, width] : widths) panel->table()->setColumnWidth(column, width);
  connect(&m_session.jobs(), &Jobs::activityChanged, panel, [=, this] {
    if (m_session.jobs().activity() == Activity::Solving)
      panel->setEmptyText(tr("The search goes on: the plan's layers stand here at its end."));
  });
  connect(&m_session.plans(), &Plans::planChanged, panel, [=, this] {
    const auto& solved = m_session.plans().solved();
    if (solved && solved->result.outcome == solve::Outcome::NoSolution)
      panel->setEmptyText(
          tr("%1, so there is no plan: the conflict card says why.").arg(toQ(solve::noSolutionText(solved->result))));
    else if (solved && solved->result.outcome == solve::Outcome::Stopped)
      panel->setEmptyText(tr("The search was stopped before it found a solution: there is no plan."));
    model->setPlan(m_session.plans().plan());
    // Shapes are read to their last digit; the sentences at the end have the room that is left.
    for (const int column : {LayersModel::Axis, LayersModel::StrategyColumn, LayersModel::Weight, LayersModel::Local})
      panel->table()->resizeColumnToContents(column);
  });
  connect(panel, &TablePanel::targetChosen, &m_session.selection(), &Selection::follow);
  (new RefreshTimer(
       panel, [=, this] { showFocusedRow(*panel); }, kTablesRefreshMs))
      ->follow(m_session.selection(), {&Selection::focusChanged})
      .follow(m_session.plans(), {&Plans::planChanged});
  return panel;
}

QWidget* MainWindow::makeNodesPanel() {
  auto* model = new NodesModel(this);
  auto* panel =
      new TablePanel(new ChangeMarks(m_session.opened(), m_session.plans(), model, this), tr("Filter operators"),
                     tr("Every operator of the graph as a row. Open a model to fill it."));
  const std::pair<int, int> widths[] = {{NodesModel::Name, 170},
                                        {NodesModel::Operator, 130},
                                        {NodesModel::Module, 260},
                                        {NodesModel::Shape, 150},
                                        {NodesModel::PlacementColumn, 80}};
  for (const auto& [column, width] : widths) panel->table()->setColumnWidth(column, width);
  connect(&m_session.opened(), &OpenedModel::changed, panel,
          [=, this] { model->setGraph(m_session.opened().model() ? m_session.opened().model()->aten : nullptr); });
  connect(panel, &TablePanel::targetChosen, &m_session.selection(), &Selection::follow);
  const auto showState = [=, this] { model->setState(m_session.debugger().state()); };
  (new RefreshTimer(panel, showState, kTablesRefreshMs))->follow(m_session.debugger(), {&Debugger::stepChanged});
  (new RefreshTimer(
       panel, [=, this] { showFocusedRow(*panel); }, kTablesRefreshMs))
      ->follow(m_session.selection(), {&Selection::focusChanged});
  return panel;
}

QWidget* MainWindow::makeLogPanel() {
  auto* log = new QPlainTextEdit;
  log->setReadOnly(true);
  log->setMaximumBlockCount(5000);
  log->setPlaceholderText(tr("What Cleave did, with times."));
  log->setAccessibleName(tr("Log"));
  connect(&m_session.notices(), &Notices::logged, log, [log](const QString& text) {
    log->appendPlainText(QTime::currentTime().toString(QStringLiteral("HH:mm:ss  ")) + text);
  });
  return log;
}

}  // namespace cleave::views
