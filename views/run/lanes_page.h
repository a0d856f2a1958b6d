#pragma once
/// The page of lanes: the timeline of the recorded step, waiting times between ranks, the selected stretch, and the
/// slowest operators with their predictions.
#include <QWidget>

#include "views/session/files.h"
#include "views/session/runs.h"
#include "views/session/selection.h"

class QLabel;
class QPushButton;
class QStackedLayout;
class QTableWidget;

namespace cleave::views {

class LaneLegend;
class LaneView;

class LanesPage : public QWidget {
  Q_OBJECT
 public:
  LanesPage(const Runs& runs, Selection& selection, Files& files, QWidget* parent = nullptr);
  void showRun();
  /// The last run's timeline, in the format of the command line's --timeline.
  void saveTrace(const QString& file);

 signals:
  void graphWanted();  ///< show the selection in the graph

 private:
  void showChosen();
  void showOperators(const RunState& run);
  void askForFile();
  const Runs& m_runs;
  Selection& m_selection;
  Files& m_files;
  LaneView* m_lanes;
  LaneLegend* m_legend;
  QTableWidget* m_operators;  ///< slowest first
  QLabel* m_waited;
  QLabel* m_chosen;
  QPushButton* m_save;
  QLabel* m_empty;
  QWidget* m_content;
  QStackedLayout* m_stack;
};

}  // namespace cleave::views
