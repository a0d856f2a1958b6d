#pragma once
/// The window: menus, toolbar, docks and status bar around one session, which outlives it. It connects signals; the
/// panels show the content.
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
  /// `remembers`: reads and writes the user's settings. Off for scripts and tests, which need the same window each
  /// time.
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
  /// Raises the dock of this name. Names are those of the Window menu, and "Run" is the run view.
  /// False if there is no such dock.
  bool raiseDock(const QString& name);
  /// True if no job, layout or refresh is pending.
  bool isSettled() const;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // main_window.cpp
  void makeCentre();
  void followStartPage();
  void followJobs();
  void followSession();
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
  void applySession(const QString& file, const SavedView& view);
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
  ExportDialog* m_export = nullptr;  ///< null until first used
  StartPage* m_start = nullptr;
  QTabWidget* m_views = nullptr;  ///< graph and run
  GraphArea* m_graph = nullptr;
  RunView* m_run = nullptr;
  MessageBar* m_message = nullptr;
  std::weak_ptr<const pipeline::Model> m_runsAtRandom;  ///< the model that the user runs without its weights
  QToolBar* m_toolBar = nullptr;
  QSpinBox* m_ranks = nullptr;
  QComboBox* m_engine = nullptr;
  QComboBox* m_sequenceParallel = nullptr;
  SolveSettings* m_solveSettings = nullptr;
  QString m_sessionFile;  ///< the open session's file; empty: not saved
  QString m_survey;       ///< title of the running survey; empty: no survey
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
