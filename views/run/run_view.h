#pragma once
/// The run of the shown plan at full size: its verdict at the top, the controls, and pages for overview, lanes, memory,
/// log, and saved runs.
#include <QWidget>

#include "views/session/files.h"
#include "views/session/runs.h"
#include "views/session/selection.h"

class QAction;
class QTabWidget;

namespace cleave::views {

class ClusterDialog;
class HistoryPage;
class LanesPage;
class LogPage;
class MemoryPage;
class OverviewPage;
class RunSetup;
class VerdictStrip;
struct RunRemedy;

class RunView : public QWidget {
  Q_OBJECT
 public:
  RunView(const OpenedModel& opened, const Settings& settings, const Plans& plans, Selection& selection, Runs& runs,
          const Jobs& jobs, Files& files, QWidget* parent = nullptr);
  /// Starts a run on this number of ranks, like the button. If memory does not suffice and the user has not ticked
  /// "start anyway", nothing starts and the return value says what to do. Else it is empty.
  QString run(int ranks);
  /// Starts with the current settings and the available weights.
  void start();
  /// Shows the commands for other machines.
  void showCluster();

  enum class Page { Overview, Lanes, Memory, Log, History };
  void showPage(Page page);
  Page page() const;
  HistoryPage& history() { return *m_history; }

 signals:
  /// Emitted instead of a run: the open archive lacks its weights, and the user may know where they are.
  void weightsWanted(const cleave::views::RunSettings& settings);
  void graphWanted();  ///< show the selection in the graph
  /// Capture the model again with these options, then run with these settings.
  void recaptureWanted(const cleave::spec::InputSpec& options, const cleave::views::RunSettings& settings);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void makePages();
  void makeConnections();
  void refreshAll();
  void refreshSetup();
  void refreshRun();
  void refreshVerdict();
  std::vector<RunRemedy> remedies();
  void addFailedStart(std::vector<RunRemedy>& remedies, const RunState& run);
  void addFailedRun(std::vector<RunRemedy>& remedies, const RunState& run);
  RunSettings asked() const;  ///< with the state of the checkbox
  QString whyTooLarge() const;
  bool lacksWeights() const;
  void exportRun();
  const OpenedModel& m_opened;
  const Settings& m_settings;
  const Plans& m_plans;
  Selection& m_selection;
  Runs& m_runs;
  const Jobs& m_jobs;
  Files& m_files;
  VerdictStrip* m_verdict;
  RunSetup* m_setup;
  QAction* m_compare;
  QAction* m_export;
  QAction* m_elsewhere;
  ClusterDialog* m_cluster = nullptr;  ///< null until first used
  QTabWidget* m_pages;
  OverviewPage* m_overview;
  LanesPage* m_lanes;
  MemoryPage* m_memory;
  LogPage* m_log;
  HistoryPage* m_history;
};

}  // namespace cleave::views
