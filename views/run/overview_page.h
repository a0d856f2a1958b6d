#pragma once
/// The first page of the run view. Before a run: the checks. Then: each rank's memory over time with the prediction,
/// its phases, the training losses, and the compared outputs.
#include <QScrollArea>

#include "views/run/run_checks.h"

class QCheckBox;
class QLabel;
class QTableWidget;

namespace cleave::views {

class LineChart;
class RankBars;

/// "1 outside, 2 NaN". Empty: all elements are within the tolerance.
QString deviationText(const pipeline::OutputDifference& output);

class OverviewPage : public QScrollArea {
  Q_OBJECT
 public:
  explicit OverviewPage(const Runs& runs, QWidget* parent = nullptr);
  /// The checks before a run. `command`: the equivalent command line.
  void showChecks(const std::vector<RunCheck>& checks, const QString& command);
  /// The text in place of the checks while no model is open.
  void showEmpty(const QString& sentence);
  /// A checkbox below the checks, shown if the ranks do not fit into memory. `why`: the reason; empty: they fit.
  void offerStartAnyway(const QString& why);
  bool wantsStartAnyway() const;
  QString startAnywayText() const;
  /// The current or last run, if any.
  void showRun();

 signals:
  void startAnywayChanged();
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
  QCheckBox* m_startAnyway;
  QLabel* m_command;
  QWidget* m_charts;
  LineChart* m_memory;
  LineChart* m_losses;
  RankBars* m_bars;
  QLabel* m_outcome;
  QTableWidget* m_outputs;
};

}  // namespace cleave::views
