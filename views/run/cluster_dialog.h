#pragma once
/// The commands that run the plan on several machines, to copy: launcher, nodes, where node 0 is and where the plan
/// lies. Stays open and follows the plan that is shown. The text is core's (pipeline/cluster.h), the command line
/// prints the same.
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
  /// What is shown: the commands, or a sentence why there are none.
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
