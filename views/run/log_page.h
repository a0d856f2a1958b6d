#pragma once
/// The page of logs: each rank's standard error, and its error message if it failed.
#include <QWidget>

#include "views/session/runs.h"

class QComboBox;
class QPlainTextEdit;

namespace cleave::views {

class LogPage : public QWidget {
  Q_OBJECT
 public:
  explicit LogPage(const Runs& runs, QWidget* parent = nullptr);
  void showRun();
  void showRank(int rank);

 private:
  void showText();
  const Runs& m_runs;
  QComboBox* m_rank;
  QPlainTextEdit* m_text;
};

}  // namespace cleave::views
