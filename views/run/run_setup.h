#pragma once
/// The controls of a run: ranks, backend, training, start and stop. The values are in Runs::settings, which scripts set
/// too.
#include <QWidget>

#include "views/session/runs.h"

class QCheckBox;
class QComboBox;
class QLineEdit;
class QMenu;
class QPushButton;
class QSpinBox;

namespace cleave::views {

class RunSetup : public QWidget {
  Q_OBJECT
 public:
  RunSetup(Runs& runs, const Jobs& jobs, QWidget* parent = nullptr);
  /// Enables or disables the start. `whyNot`: the reason.
  void setStartable(bool isStartable, const QString& whyNot);
  /// The menu of further actions, opened by one button.
  QMenu& more() { return *m_more; }

 signals:
  void startWanted();

 private:
  void makeTraining();
  void showSettings();
  void applySettings();
  Runs& m_runs;
  QSpinBox* m_ranks;
  QComboBox* m_backend;
  QPushButton* m_start;
  QPushButton* m_stop;
  QCheckBox* m_trains;
  QMenu* m_more;
  std::vector<QWidget*> m_training;  ///< hidden for a forward pass
  QSpinBox* m_steps;
  QComboBox* m_optimizer;
  QLineEdit* m_learningRate;
  QLineEdit* m_weightDecay;
  QLineEdit* m_clipNorm;  ///< empty: no clipping
  QSpinBox* m_accumulate;
};

}  // namespace cleave::views
