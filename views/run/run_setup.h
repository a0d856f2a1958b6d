#pragma once
/// The controls of a run: ranks, backend, training; start and stop. What is asked lies in Runs::settings, which scripts
/// set too.
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
  /// Whether a run may start, and why not.
  void setStartable(bool isStartable, const QString& whyNot);
  /// What else can be done, behind one button.
  QMenu& more() { return *m_more; }

 signals:
  void startWanted();

 private:
  void makeTraining();
  void showSettings();
  void takeSettings();
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
  QLineEdit* m_clipNorm;  ///< empty: gradients are not scaled down
  QSpinBox* m_accumulate;
};

}  // namespace cleave::views
