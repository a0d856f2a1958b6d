#pragma once
/// What the toolbar has no room for: for which device and use costs are counted, the memory budget, the menu, and the
/// rules and values that the user treats specially. Follows the document; every control takes effect at once, on the
/// next solve.
#include <QDialog>

#include "views/session/document.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;

namespace cleave::views {

class SolveSettings : public QDialog {
  Q_OBJECT
 public:
  explicit SolveSettings(Document& document, QWidget* parent = nullptr);

 signals:
  /// The user changed a setting (not a sample, a remedy or a branch).
  void changedByUser();

 private:
  void refresh();
  QWidget* makeBudget();
  QLineEdit* makePatterns(const QString& hint, Result<void> (Document::*apply)(std::vector<std::string>));
  void readBudget();
  void showBudget(std::optional<std::int64_t> bytes);
  Document& m_document;
  QComboBox *m_menu, *m_device, *m_optimizer, *m_unit;
  QCheckBox *m_training, *m_hasBudget;
  QDoubleSpinBox* m_budget;
  QDoubleSpinBox* m_slack;
  QLineEdit *m_rulesOff, *m_redistributable;
  QLabel *m_deviceFacts, *m_trouble;
};

/// Reads and writes the settings of solving in the user's configuration.
void loadSolveSettings(Document& document);
void saveSolveSettings(const Document& document);

}  // namespace cleave::views
