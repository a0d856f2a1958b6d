#pragma once
/// The page of the lanes: the time line of the step that was recorded, who waited for whom, what is chosen in it, and
/// the operators that took longest beside what was predicted of them.
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
  /// Of the last run, as the command line's --timeline writes it.
  void saveTrace(const QString& file);

 signals:
  void graphWanted();  ///< what was chosen is to be seen in the graph

 private:
  void showChosen();
  void showOperators(const RunState& run);
  void askForFile();
  const Runs& m_runs;
  Selection& m_selection;
  Files& m_files;
  LaneView* m_lanes;
  LaneLegend* m_legend;
  QTableWidget* m_operators;  ///< longest first
  QLabel* m_waited;
  QLabel* m_chosen;
  QPushButton* m_save;
  QLabel* m_empty;
  QWidget* m_content;
  QStackedLayout* m_stack;
};

}  // namespace cleave::views
