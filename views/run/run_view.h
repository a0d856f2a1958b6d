#pragma once
/// The run of the shown plan at full size: its verdict above all else, the controls, and pages under them: overview,
/// lanes, memory, log, and the runs that were kept.
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
  /// As its button does, on so many ranks. Nothing is started that memory does not suffice for, unless the user insists
  /// here: then what to do is returned; else nothing.
  QString run(int ranks);
  /// With the settings that there are, whatever weights there are.
  void start();
  /// The commands for other machines.
  void showCluster();

  enum class Page { Overview, Lanes, Memory, Log, History };
  void showPage(Page page);
  Page page() const;
  HistoryPage& history() { return *m_history; }

 signals:
  /// Instead of a run: the open archive lacks its weights, and who runs may know where they are.
  void weightsWanted(const cleave::views::RunSettings& settings);
  void graphWanted();  ///< what was chosen here is to be seen there
  /// The model is to be captured again with these, and run so.
  void recaptureWanted(const cleave::torch_capture::CaptureOptions& options,
                       const cleave::views::RunSettings& settings);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refreshAll();
  void refreshSetup();
  void refreshRun();
  void refreshVerdict();
  std::vector<RunRemedy> remedies();
  void addFailedStart(std::vector<RunRemedy>& remedies, const RunState& run);
  void addFailedRun(std::vector<RunRemedy>& remedies, const RunState& run);
  RunSettings asked() const;  ///< with what was ticked here
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
  ClusterDialog* m_cluster = nullptr;  ///< once it was asked for
  QTabWidget* m_pages;
  OverviewPage* m_overview;
  LanesPage* m_lanes;
  MemoryPage* m_memory;
  LogPage* m_log;
  HistoryPage* m_history;
};

}  // namespace cleave::views
