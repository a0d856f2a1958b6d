#include "views/window/solve_settings.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>

#include "views/base/text.h"
#include "views/window/setting_field.h"

namespace cleave::views {

namespace {
constexpr int kLeastWidth = 460;
const QString kGroup = QStringLiteral("plan");
}  // namespace

SolveSettings::SolveSettings(const OpenedModel& opened, Settings& settings, QWidget* parent)
    : QDialog(parent), m_opened(opened), m_settings(settings), m_trouble(new QLabel) {
  setWindowTitle(QStringLiteral("Solve settings"));
  setMinimumWidth(kLeastWidth);
  m_trouble->setWordWrap(true);
  m_trouble->hide();
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  for (const SettingField::Row& row : pipeline::planSettings()) {
    if (row.label.empty()) continue;
    SettingField* field = m_fields.emplace_back(makeSettingField(row, settings, this));
    form->addRow(toQ(row.label), field);
    connect(field, &SettingField::changedByUser, this, &SolveSettings::changedByUser);
    connect(field, &SettingField::refused, this, &SolveSettings::showTrouble);
  }
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  auto* solve = buttons->addButton(QStringLiteral("&Solve"), QDialogButtonBox::ActionRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(m_trouble);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(solve, &QPushButton::clicked, &settings, &Settings::solve);
  for (const auto signal : {&Settings::changed, &Settings::demandsChanged})
    connect(&settings, signal, this, &SolveSettings::refresh);
  refresh();
}

void SolveSettings::showTrouble(const QString& why) {
  m_trouble->setVisible(!why.isEmpty());
  m_trouble->setText(why);
  adjustSize();  // its lines must not shrink the others
}

QString SolveSettings::dropoutTip() const {
  const pipeline::Model* model = m_opened.model().get();
  if (!model) return {};
  if (model->exported) return QStringLiteral("An exported program keeps the dropout of its export.");
  if (model->info.dropouts.empty())
    return QStringLiteral("This model has no dropout: all probabilities in its config are 0.");
  return QStringLiteral("Dropout of this model: %1.").arg(toQ(model->info.dropouts));
}

void SolveSettings::refresh() {
  const bool isTraining = m_settings.spec().cost.isTraining, hasModel = m_opened.model() != nullptr;
  const bool isExported = hasModel && m_opened.model()->exported;
  for (SettingField* field : m_fields) {
    const SettingField::Row& row = field->row();
    field->setEnabled((isTraining || !row.isOfTraining) && !(isExported && row.isOfFolders) &&
                      (hasModel || !row.solvesAtOnce));
    if (row.isNamed("dropout")) field->setTip(dropoutTip());
    field->refresh();
  }
}

void saveSolveSettings(const Settings& settings) {
  QSettings stored;
  stored.beginGroup(kGroup);
  const pipeline::PlanSettings now = settings.request();
  for (const SettingField::Row& row : pipeline::planSettings()) {
    if (!row.isPreference) continue;
    const std::vector<std::string> texts = row.texts(now);
    stored.setValue(toQ(std::string(row.name())), texts.empty() ? QString() : toQ(texts.front()));
  }
}

/// A missing or invalid entry (older version, edited file) leaves the default.
void loadSolveSettings(Settings& settings) {
  QSettings stored;
  stored.beginGroup(kGroup);
  for (const SettingField::Row& row : pipeline::planSettings()) {
    const QString text = stored.value(toQ(std::string(row.name()))).toString();
    if (row.isPreference && !text.isEmpty()) static_cast<void>(settings.set(row, {toStd(text)}));
  }
}

}  // namespace cleave::views
