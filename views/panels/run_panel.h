#pragma once
/// Running the plan on local ranks: how many, on what, what would be started, whether it can work; then every rank's
/// memory against the prediction, and what came out.
#include <QWidget>

#include "pipeline/run.h"
#include "views/session/files.h"
#include "views/session/runs.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;
class QTableWidget;
class QScrollArea;

namespace cleave::views {

class ClusterDialog;
class RankBars;

/// One line of the check before a run.
struct RunCheck {
  bool isOk = true;
  QString text;
};
/// What speaks for and against running this plan on so many ranks, in words. `whyNot`: what Runs::whyNot says.
std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, int ranks, launch::Backend backend,
                                      const QString& whyNot = {});
/// Whether the ranks fit into memory, and after them the unsplit run they are compared with; empty while there is no
/// plan for so many, or no such backend here.
std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, int ranks, launch::Backend backend);
/// The command line that does the same, quoted for a shell; empty when there is none.
QString runCommand(const Runs& runs, int ranks, launch::Backend backend, bool ignoresMemory = false);
/// For the export button: the report as `run --json` writes it, with what was watched of each rank as `watched`; the
/// samples as CSV. Of a run that has ended.
QString runToJson(const RunState& state);
QString runToCsv(const RunState& state);

class RunPanel : public QWidget {
  Q_OBJECT
 public:
  RunPanel(const OpenedModel& opened, const Settings& settings, const Plans& plans, Runs& runs, const Jobs& jobs,
           Files& files, QWidget* parent = nullptr);
  /// As its button does, on so many ranks. Nothing is started that memory does not suffice for, unless the user insists
  /// here: then what to do is returned; else nothing.
  QString run(int ranks);
  /// The same, whatever weights there are.
  void start(int ranks);
  /// The commands for other machines.
  void showCluster();

 signals:
  /// Instead of a run: the open archive lacks its weights, and who runs may know where they are.
  void weightsWanted(int ranks, launch::Backend backend);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void refreshAll();
  void refreshSetup();
  void refreshRun();
  void refreshResult();
  void showLog(int rank);
  launch::Backend backend() const;
  bool lacksWeights(int ranks) const;
  bool insists() const;  ///< that ranks run which do not fit
  void exportRun();
  const OpenedModel& m_opened;
  const Settings& m_settings;
  const Plans& m_plans;
  Runs& m_runs;
  const Jobs& m_jobs;
  Files& m_files;
  QSpinBox* m_ranks;
  QComboBox* m_backend;
  QPushButton* m_start;
  QPushButton* m_stop;
  QPushButton* m_export;
  QLabel* m_checks;
  QCheckBox* m_insist;  ///< shown where the ranks do not fit into memory
  QLabel* m_command;
  QPushButton* m_elsewhere;
  ClusterDialog* m_cluster = nullptr;  ///< once it was asked for
  RankBars* m_bars;
  QScrollArea* m_scroll;
  QLabel* m_verdict;
  QTableWidget* m_outputs;
  QPlainTextEdit* m_log;
  int m_logRank = 0;
};

}  // namespace cleave::views
