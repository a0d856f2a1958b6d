#pragma once
/// The window: menus, toolbar, docks and status bar around one session, which outlives it. It wires; what is shown
/// lives in the panels.
#include <QMainWindow>
#include <map>

#include "views/session/session.h"

class QComboBox;
class QDockWidget;
class QLabel;
class QLineEdit;
class QProgressBar;
class QSpinBox;
class QStackedWidget;
class QTabWidget;
class QToolButton;

namespace cleave::views {

class ExportDialog;
class GraphArea;
class MessageBar;
class RunView;
class SolveSettings;
class StartPage;
enum class Glyph;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  /// `remembers`: read and write the user's settings (off for scripts and tests: always the same window).
  MainWindow(Session& session, bool remembers, QWidget* parent = nullptr);
  ~MainWindow() override;

  Session& session() { return m_session; }
  GraphArea& graphArea() { return *m_graph; }
  RunView& runView() { return *m_run; }
  void showGraph();
  void showRun();
  const Result<std::vector<pipeline::Sample>>& samples() const { return m_samples; }
  void openPath(const QString& path);
  enum class Preset { Inspect, Debug, Run };
  void applyPreset(Preset preset);
  void setDarkTheme(bool isDark);
  void setSearchText(const QString& text);
  /// The dock of this name to the front; names are those of the Window menu, and "Run" is the view of the run.
  /// False when there is none.
  bool raiseDock(const QString& name);
  /// Nothing is under way: no work, no layout, no pending refresh.
  bool isSettled() const;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // main_window.cpp
  void showModel();
  void showView(QWidget& view);
  void focusShownView();
  void updateTitle();
  void connectMessages();
  void applyBusy();
  void showDownload(const hub::DownloadState& state);
  void updateProgress(const QString& stage, qint64 done, qint64 total);
  void showEnd(bool hasSucceeded, const QString& sentence);
  void updateStep();
  void updateSettings();
  void rememberSettings();
  void stopWork();
  void escape();
  // main_window_files.cpp
  void makeFileMenu();
  void openDialog();
  void openFileDialog();
  void openHubDialog();
  void remember(const QString& path);
  void updateRecent();
  void saveSession();
  void saveSessionAs();
  void takeSession(const QString& file, const SavedView& view);
  void exportPlan();
  void savePicture();
  // main_window_actions.cpp
  void makeMenus();
  void makeToolBar();
  void makeStatusBar();
  void updateActions();
  void updateIcons();
  QAction* addAction(QMenu* menu, const QString& name, const QString& text, const QKeySequence& key,
                     std::function<void()> run);
  QAction* action(const QString& name) const { return m_actions.at(name); }
  void makeSolveMenu();
  void makeDebugMenu();
  void makeViewMenus();
  void addSolveControls();
  void updateBranchActions();
  void fillPinsMenu(QMenu* menu);
  void runRanks();
  void askForWeights(const RunSettings& settings);
  void askForHubWeights(const RunSettings& settings);
  void askForPin();
  void askForCapture();
  void showKeys();
  void showAbout();
  // main_window_docks.cpp
  void makeDocks();
  QDockWidget* addDock(const QString& name, QWidget* content, Qt::DockWidgetArea area);
  void arrangeRight(Preset preset);
  void keepFocusInView(const QWidget* old);
  void keepCentreWide();
  void keepCentreHigh();
  QDockWidget* dock(const QString& name) const { return m_docks.at(name); }

  Session& m_session;
  Result<std::vector<pipeline::Sample>> m_samples;
  bool m_remembers;
  bool m_hasShownModel = false;
  std::size_t m_branchCount = 0;
  std::map<QString, QAction*> m_actions;
  std::map<QString, QDockWidget*> m_docks;
  QStackedWidget* m_stack = nullptr;
  ExportDialog* m_export = nullptr;  ///< once it was asked for
  StartPage* m_start = nullptr;
  QTabWidget* m_views = nullptr;  ///< graph and run
  GraphArea* m_graph = nullptr;
  RunView* m_run = nullptr;
  MessageBar* m_message = nullptr;
  std::weak_ptr<const pipeline::Model> m_runsAtRandom;  ///< what the user runs without its weights
  QToolBar* m_toolBar = nullptr;
  QSpinBox* m_ranks = nullptr;
  QComboBox* m_engine = nullptr;
  QComboBox* m_sequenceParallel = nullptr;
  SolveSettings* m_solveSettings = nullptr;
  QString m_sessionFile;  ///< what is open was saved there, or came from there; empty: neither
  QString m_survey;       ///< what the survey under way is called; empty: none
  QLabel* m_stepLabel = nullptr;
  QLineEdit* m_search = nullptr;
  QLabel* m_hits = nullptr;
  QMenu* m_recentMenu = nullptr;
  QLabel* m_status = nullptr;
  QProgressBar* m_progress = nullptr;
  QToolButton* m_cancel = nullptr;
};

/// Style, palette and fonts of the whole program.
void applyTheme(bool isDark);

}  // namespace cleave::views
