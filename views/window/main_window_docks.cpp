// The docks: which panels there are, how they follow the session, and the presets.
#include <QApplication>
#include <QDockWidget>
#include <QStatusBar>
#include <QToolBar>
#include <algorithm>

#include "views/graph/view/graph_view.h"
#include "views/panels/breakpoints_panel.h"
#include "views/panels/conflict_card.h"
#include "views/panels/decision_panel.h"
#include "views/panels/diff_panel.h"
#include "views/panels/layers_panel.h"
#include "views/panels/log_panel.h"
#include "views/panels/modules_panel.h"
#include "views/panels/nodes_panel.h"
#include "views/panels/pareto_panel.h"
#include "views/panels/preflight_panel.h"
#include "views/panels/search_panel.h"
#include "views/run/run_view.h"
#include "views/window/graph_area.h"
#include "views/window/main_window.h"

namespace cleave::views {

namespace {
const QString kModules = QStringLiteral("Modules"), kDecision = QStringLiteral("Decision"),
              kConflict = QStringLiteral("Conflict"), kSearch = QStringLiteral("Search"),
              kBreakpoints = QStringLiteral("Breakpoints"), kLayers = QStringLiteral("Layers"),
              kNodes = QStringLiteral("Nodes"), kLog = QStringLiteral("Log"), kPreflight = QStringLiteral("Pre-flight"),
              kPareto = QStringLiteral("Pareto"), kDiff = QStringLiteral("Diff");
}  // namespace

QDockWidget* MainWindow::addDock(const QString& name, QWidget* content, Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(name, this);
  dock->setObjectName(name);
  dock->setWidget(content);
  addDockWidget(area, dock);
  m_docks[name] = dock;
  connect(dock, &QDockWidget::visibilityChanged, this, [this, dock](bool isVisible) {
    const QWidget* focused = QApplication::focusWidget();
    if (!isVisible && focused && dock->isAncestorOf(focused)) focusShownView();
  });
  return dock;
}

/// A dock that is hidden with the focus passes it to the next widget, often a text field, which would then get the
/// keys.
void MainWindow::keepFocusInView(const QWidget* old) {
  if (!old || !isActiveWindow()) return;
  const auto hadIt = [old](const auto& entry) { return entry.second->isAncestorOf(old) && !entry.second->isVisible(); };
  if (std::any_of(m_docks.begin(), m_docks.end(), hadIt)) focusShownView();
}

void MainWindow::makeDocks() {
  Session& s = m_session;
  addDock(kModules, new ModulesPanel(s.opened(), s.plans(), s.splits(), s.selection()), Qt::LeftDockWidgetArea);
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
  addDock(kLayers, new LayersPanel(s.opened(), s.plans(), s.jobs(), s.selection()), Qt::BottomDockWidgetArea);
  addDock(kNodes, new NodesPanel(s.opened(), s.plans(), s.splits(), s.selection()), Qt::BottomDockWidgetArea);
  addDock(kLog, new LogPanel(s.notices()), Qt::BottomDockWidgetArea);
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
  for (const QString& name : {kLayers, kNodes, kBreakpoints, kLog}) {
    tabifyDockWidget(last, dock(name));
    last = dock(name);
  }
  // The run view gets the whole window. The Window menu shows each panel again.
  const bool isRun = preset == Preset::Run;
  isRun ? showRun() : showGraph();
  for (const auto& [name, widget] : m_docks) widget->setVisible(!isRun);
  if (isRun) return;
  resizeDocks({dock(kModules), dock(kDecision)}, {std::min(250, width() * 6 / 25), std::min(340, width() * 8 / 25)},
              Qt::Horizontal);
  resizeDocks({dock(kSearch)}, {preset == Preset::Debug ? 270 : 240}, Qt::Vertical);
  dock(preset == Preset::Inspect ? kLayers : kSearch)->raise();
  dock(kDecision)->raise();
}

/// Inspect: one group at full height, for reading. Debug: the decision above the conflict.
void MainWindow::arrangeRight(Preset preset) {
  addDockWidget(Qt::RightDockWidgetArea, dock(kDecision));
  QDockWidget* last = dock(kDecision);
  if (preset == Preset::Debug) {
    last = dock(kConflict);
    addDockWidget(Qt::RightDockWidgetArea, last);
    splitDockWidget(dock(kDecision), last, Qt::Vertical);
  }
  for (const QString& name : {kConflict, kPreflight, kPareto, kDiff}) {
    if (dock(name) == last) continue;
    tabifyDockWidget(last, dock(name));
    last = dock(name);
  }
  if (preset != Preset::Debug) return;
  resizeDocks({dock(kDecision), dock(kConflict)}, {460, 480}, Qt::Vertical);
  dock(kConflict)->raise();
}

void MainWindow::keepCentreWide() {
  constexpr int kLeastShare = 9, kOf = 20;
  const int lacking = width() * kLeastShare / kOf - centralWidget()->width();
  if (lacking <= 0 || m_docks.empty()) return;
  QList<QDockWidget*> beside;
  int given = 0;
  for (const auto area : {Qt::LeftDockWidgetArea, Qt::RightDockWidgetArea}) {
    const auto isThere = [&](const auto& entry) {
      QDockWidget* dock = entry.second;
      return !dock->isFloating() && dockWidgetArea(dock) == area && !dock->visibleRegion().isEmpty();
    };
    const auto found = std::find_if(m_docks.begin(), m_docks.end(), isThere);
    if (found == m_docks.end()) continue;
    beside << found->second;
    given += found->second->width();
  }
  QList<int> widths;
  for (const QDockWidget* dock : beside) widths << std::max(1, dock->width() - lacking * dock->width() / given);
  resizeDocks(beside, widths, Qt::Horizontal);
}

void MainWindow::keepCentreHigh() {
  // Height for the graph and the bars above it, or for the run and its controls.
  constexpr int kLeastShare = 3, kOf = 5, kEnough = 400, kShareOfRun = 4, kEnoughForRun = 500;
  const int least = m_run->isVisible() ? std::min(kEnoughForRun, height() * kShareOfRun / kOf)
                                       : std::min(kEnough, height() * kLeastShare / kOf);
  const int lacking = least - centralWidget()->height();
  if (lacking <= 0 || m_docks.empty()) return;
  QDockWidget* below = dock(QStringLiteral("Search"));
  const int given = statusBar()->geometry().top() - centralWidget()->geometry().bottom();
  if (!below->isFloating() && dockWidgetArea(below) == Qt::BottomDockWidgetArea)
    resizeDocks({below}, {std::max(1, given - lacking)}, Qt::Vertical);
}

bool MainWindow::raiseDock(const QString& name) {
  if (name.compare(QLatin1String("Run"), Qt::CaseInsensitive) == 0) return showRun(), true;
  const auto found = std::find_if(m_docks.begin(), m_docks.end(),
                                  [&](const auto& dock) { return dock.first.compare(name, Qt::CaseInsensitive) == 0; });
  if (found == m_docks.end()) return false;
  found->second->show();
  found->second->raise();
  return true;
}

}  // namespace cleave::views
