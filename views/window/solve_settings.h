#pragma once
/// The settings that do not fit into the toolbar: device and use for the costs, memory budget, candidate set, and the
/// rules and values that the user treats specially. Follows the session. Every control takes effect on the next solve.
#include <QDialog>

#include "views/session/notices.h"
#include "views/session/settings.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;

namespace cleave::views {

class SolveSettings : public QDialog {
  Q_OBJECT
 public:
  SolveSettings(const OpenedModel& opened, Settings& settings, Notices& notices, QWidget* parent = nullptr);

 signals:
  /// The user changed a setting (as opposed to a sample, a remedy or a branch).
  void changedByUser();

 private:
  void refresh();
  QWidget* makeBudget();
  QLineEdit* makePatterns(const QString& hint, Result<void> (Settings::*apply)(std::vector<std::string>));
  void readBudget();
  void showBudget(std::optional<std::int64_t> bytes);
  const OpenedModel& m_opened;
  Settings& m_settings;
  Notices& m_notices;
  QComboBox *m_candidateSet, *m_device, *m_optimizer, *m_unit;
  QCheckBox *m_training, *m_checkpoints, *m_dropout, *m_hasBudget;
  QDoubleSpinBox* m_budget;
  QDoubleSpinBox* m_slack;
  QLineEdit *m_rulesOff, *m_redistributable;
  QLabel *m_deviceFacts, *m_trouble;
};

/// Reads and writes the settings of solving in the user's configuration.
void loadSolveSettings(Settings& settings);
void saveSolveSettings(const Settings& settings);

}  // namespace cleave::views
