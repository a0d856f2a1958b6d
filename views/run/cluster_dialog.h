#pragma once
/// The commands that run the plan on several machines, for copying. Inputs: launcher, nodes, node 0, and the path of
/// the plan. The dialog stays open and follows the shown plan. The text comes from core (pipeline/cluster.h); the
/// command line prints the same.
#include <QDialog>

#include "views/session/plans.h"
#include "views/session/runs.h"

class QComboBox;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace cleave::views {

class ClusterDialog : public QDialog {
  Q_OBJECT
 public:
  ClusterDialog(const Plans& plans, Runs& runs, QWidget* parent = nullptr);
  /// The text shown: the commands, or one sentence with the reason for their absence.
  QString text() const;

 private:
  void refresh();
  const Plans& m_plans;
  Runs& m_runs;
  QComboBox* m_launcher;
  QSpinBox* m_nodes;
  QLineEdit* m_host;
  QLineEdit* m_planFile;
  QPlainTextEdit* m_text;
  QPushButton* m_copy;
};

}  // namespace cleave::views
