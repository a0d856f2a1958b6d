#pragma once
/// The dock of time against memory: the plot with its readout and buttons, or the action that computes it.
#include <QWidget>

#include "views/session/answers.h"
#include "views/session/plans.h"

class QLabel;
class QPushButton;

namespace cleave::views {

class EmptyState;
class ParetoPlot;

class ParetoPanel : public QWidget {
  Q_OBJECT
 public:
  ParetoPanel(const OpenedModel& opened, Settings& settings, Plans& plans, Answers& answers, const Jobs& jobs,
              QWidget* parent = nullptr);

 private:
  void refresh();
  void showPlot();
  void showEmpty();
  void fill();
  void copyTable() const;
  const OpenedModel& m_opened;
  Settings& m_settings;
  Plans& m_plans;
  Answers& m_answers;
  const Jobs& m_jobs;
  EmptyState* m_empty;
  QWidget* m_full;
  ParetoPlot* m_plot;
  QLabel* m_readout;
  QLabel* m_summary;
  QPushButton* m_use;
};

}  // namespace cleave::views
