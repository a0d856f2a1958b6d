#pragma once
/// A row of the table of settings (settings/setting.h) as a control of the settings page. GUI thread only.
///
///     SettingField* field = makeSettingField(row, settings, this);
///     form->addRow(toQ(row.label), field);
///     connect(field, &SettingField::changedByUser, ...);
#include <QWidget>

#include "views/session/settings.h"

namespace cleave::views {

class SettingField : public QWidget {
  Q_OBJECT
 public:
  using Row = settings::Setting<pipeline::PlanSettings>;
  SettingField(const Row& row, Settings& settings, QWidget* parent);
  const Row& row() const { return m_row; }
  /// Shows the current value.
  virtual void refresh() = 0;
  void setTip(const QString& tip);

 signals:
  void changedByUser();
  void refused(const QString& why);  ///< the value was not set

 protected:
  /// The current value's texts, as Row::texts.
  std::vector<std::string> texts() const { return m_row.texts(m_settings.request()); }
  /// Sets the value that the user chose, unless it is the current one.
  void set(const std::vector<std::string>& texts);
  void fill(QWidget* control);  ///< the control is all of this field
  Settings& settings() { return m_settings; }

 private:
  const Row& m_row;
  Settings& m_settings;
  QWidget* m_control = nullptr;  ///< null: this field consists of several
};

/// The control for the row's kind of value.
SettingField* makeSettingField(const SettingField::Row& row, Settings& settings, QWidget* parent);

}  // namespace cleave::views
