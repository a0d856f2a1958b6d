#pragma once
/// The first page of the run view: before a run what speaks for and against it; then each rank's memory over time
/// against the prediction, its phases, the losses of training, and what was compared.
#include <QScrollArea>

#include "views/run/run_checks.h"

class QCheckBox;
class QLabel;
class QTableWidget;

namespace cleave::views {

class LineChart;
class RankBars;

/// "1 outside, 2 not a number"; empty: neither.
QString deviationText(const pipeline::OutputDifference& output);

class OverviewPage : public QScrollArea {
  Q_OBJECT
 public:
  explicit OverviewPage(const Runs& runs, QWidget* parent = nullptr);
  /// What is known before a run; `command`: the command line that does the same.
  void showChecks(const std::vector<RunCheck>& checks, const QString& command);
  /// In place of checks while nothing is open.
  void showEmpty(const QString& sentence);
  /// A checkbox under the checks: shown where the ranks do not fit into memory, for `why`; empty: they fit.
  void askToInsist(const QString& why);
  bool insists() const;
  QString insistText() const;
  /// The run that there is, or none.
  void showRun();

 signals:
  void insistChanged();
  void rankChosen(int rank);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void showCharts(const RunState& run);
  static QStringList outcomeLines(const RunState& run);
  void showOutputs(const pipeline::RunReport& report);
  const Runs& m_runs;
  QWidget* m_content;
  QLabel* m_checks;
  QCheckBox* m_insist;
  QLabel* m_command;
  QWidget* m_charts;
  LineChart* m_memory;
  LineChart* m_losses;
  RankBars* m_bars;
  QLabel* m_outcome;
  QTableWidget* m_outputs;
};

}  // namespace cleave::views
