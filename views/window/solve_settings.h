#pragma once
/// The settings page: every setting of the table (pipeline/settings/plan_settings.h) that has a label there. Follows
/// the session. Every control takes effect on the next solve.
#include <QDialog>

#include "views/session/settings.h"

class QLabel;

namespace cleave::views {

class SettingField;

class SolveSettings : public QDialog {
  Q_OBJECT
 public:
  SolveSettings(const OpenedModel& opened, Settings& settings, QWidget* parent = nullptr);

 signals:
  /// The user changed a setting (as opposed to a sample, a remedy or a branch).
  void changedByUser();

 private:
  void refresh();
  void showTrouble(const QString& why);
  QString dropoutTip() const;
  const OpenedModel& m_opened;
  Settings& m_settings;
  std::vector<SettingField*> m_fields;
  QLabel* m_trouble;
};

/// Reads and writes the settings that are preferences in the user's configuration.
void loadSolveSettings(Settings& settings);
void saveSolveSettings(const Settings& settings);

}  // namespace cleave::views
