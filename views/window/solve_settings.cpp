#include "views/window/solve_settings.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalBlocker>
#include <cmath>

#include "pipeline/solve/devices.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr std::int64_t kMiB = 1ll << 20, kGiB = 1ll << 30;
constexpr double kMostGiB = 1 << 20;
constexpr double kLeastSlackStep = 0.001;
constexpr int kWidth = 460;

/// "*softmax*, aten::mul.Tensor" → its parts.
std::vector<std::string> patternsOf(const QString& text) {
  std::vector<std::string> patterns;
  for (const QString& part : text.split(QLatin1Char(','), Qt::SkipEmptyParts))
    if (const QString trimmed = part.trimmed(); !trimmed.isEmpty()) patterns.push_back(toStd(trimmed));
  return patterns;
}

QString textOf(const std::vector<std::string>& patterns) {
  QStringList parts;
  for (const std::string& pattern : patterns) parts << toQ(pattern);
  return parts.join(QStringLiteral(", "));
}

QString rateText(double bytesPerSecond) {
  return QStringLiteral("%1/s").arg(bytesText(static_cast<std::int64_t>(bytesPerSecond)));
}

QString factsText(const solve::DeviceProfile& profile) {
  return QStringLiteral("%1 memory at %2, links at %3, %4 TFLOP/s in bfloat16")
      .arg(bytesText(profile.memoryBytes), rateText(profile.memoryBytesPerSecond), rateText(profile.linkBytesPerSecond),
           QString::number(profile.halfFlopsPerSecond / 1e12, 'f', 0));
}
}  // namespace

SolveSettings::SolveSettings(const OpenedModel& opened, Settings& settings, Notices& notices, QWidget* parent)
    : QDialog(parent),
      m_opened(opened),
      m_settings(settings),
      m_notices(notices),
      m_candidateSet(new QComboBox),
      m_device(new QComboBox),
      m_optimizer(new QComboBox),
      m_unit(new QComboBox),
      m_training(new QCheckBox(QStringLiteral("Plan for a training step: forward, backward, optimizer"))),
      m_checkpoints(
          new QCheckBox(QStringLiteral("Save only block inputs and recompute the rest in the backward pass"))),
      m_dropout(new QCheckBox(QStringLiteral("Train with the dropout of config.json"))),
      m_hasBudget(new QCheckBox(QStringLiteral("at most"))),
      m_budget(new QDoubleSpinBox),
      m_slack(new QDoubleSpinBox),
      m_deviceFacts(new QLabel),
      m_trouble(new QLabel) {
  setWindowTitle(QStringLiteral("Solve settings"));
  setMinimumWidth(kWidth);
  m_candidateSet->addItem(QStringLiteral("the engine's default (reference: optimum, others: full)"));
  m_candidateSet->addItem(QStringLiteral("optimum: the reference's placements"), int(rules::CandidateSet::Optimum));
  m_candidateSet->addItem(QStringLiteral("full: all placements and strategies"), int(rules::CandidateSet::Full));
  if (const auto profiles = pipeline::deviceProfiles())
    for (const solve::DeviceProfile& profile : *profiles) m_device->addItem(toQ(profile.title), toQ(profile.name));
  for (const auto optimizer :
       {solve::Optimizer::None, solve::Optimizer::Sgd, solve::Optimizer::Momentum, solve::Optimizer::AdamW})
    m_optimizer->addItem(toQ(solve::toText(optimizer)), int(optimizer));
  m_deviceFacts->setWordWrap(true);
  m_trouble->setWordWrap(true);
  m_trouble->hide();

  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  form->addRow(QStringLiteral("&Candidates"), m_candidateSet);
  form->addRow(QStringLiteral("&Device"), m_device);
  form->addRow(QString(), m_deviceFacts);
  form->addRow(QStringLiteral("&Training"), m_training);
  form->addRow(QStringLiteral("&Optimizer"), m_optimizer);
  form->addRow(QStringLiteral("Chec&kpoints"), m_checkpoints);
  form->addRow(QStringLiteral("Dro&pout"), m_dropout);
  form->addRow(QStringLiteral("Memory per &rank"), makeBudget());
  m_slack->setRange(0, solve::kMostSlackPercent);
  m_slack->setAccessibleName(QStringLiteral("Slack"));
  m_slack->setDecimals(3);
  m_slack->setSuffix(QStringLiteral(" %"));
  m_slack->setToolTip(
      QStringLiteral("Allowed slowdown of a step, in percent, to reduce memory per rank. 0: the fastest plan. "
                     "Only the engine optimal uses it."));
  form->addRow(QStringLiteral("S&lack"), m_slack);
  m_rulesOff = makePatterns(QStringLiteral("operators, as aten::mul.Tensor, *embedding*"), &Settings::setRulesOff);
  form->addRow(QStringLiteral("Rules &off"), m_rulesOff);
  m_rulesOff->setToolTip(
      QStringLiteral("Operators whose rules are switched off. They accept replicated operands only. Solves at once."));
  m_redistributable = makePatterns(QStringLiteral("values, as add_3, linear_*"), &Settings::setRedistributable);
  form->addRow(QStringLiteral("May be &gathered"), m_redistributable);
  m_redistributable->setToolTip(QStringLiteral(
      "Values that may be redistributed after they are computed, by an all-gather or a slice. Solves at once."));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  auto* solve = buttons->addButton(QStringLiteral("&Solve"), QDialogButtonBox::ActionRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(m_trouble);
  layout->addWidget(buttons);

  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(solve, &QPushButton::clicked, &settings, &Settings::solve);
  connect(m_candidateSet, &QComboBox::activated, this, [this] {
    const QVariant candidateSet = m_candidateSet->currentData();
    m_settings.setCandidateSet(
        candidateSet.isValid() ? std::optional(static_cast<rules::CandidateSet>(candidateSet.toInt())) : std::nullopt);
    emit changedByUser();
  });
  connect(m_device, &QComboBox::activated, this, [this] {
    if (const auto set = m_settings.setDeviceProfile(m_device->currentData().toString()); !set)
      m_notices.say(toQ(set.error().message), Severity::Failure);
    emit changedByUser();
  });
  connect(m_training, &QCheckBox::clicked, this, [this](bool isOn) {
    m_settings.setTraining(isOn);
    emit changedByUser();
  });
  connect(m_checkpoints, &QCheckBox::clicked, this, [this](bool isOn) {
    m_settings.setCheckpointsActivations(isOn);
    emit changedByUser();
  });
  connect(m_dropout, &QCheckBox::clicked, this, [this](bool isOn) {
    m_settings.setTrainsWithDropout(isOn);
    emit changedByUser();
  });
  connect(m_optimizer, &QComboBox::activated, this, [this] {
    m_settings.setOptimizer(static_cast<solve::Optimizer>(m_optimizer->currentData().toInt()));
    emit changedByUser();
  });
  connect(m_slack, &QDoubleSpinBox::editingFinished, this, [this] {
    // A value that the field cannot show exactly is kept until another one is typed.
    if (std::abs(m_slack->value() - m_settings.options().cost.slackPercent) < kLeastSlackStep / 2) return;
    m_settings.setSlack(m_slack->value());
    emit changedByUser();
  });
  for (const auto signal : {&Settings::changed, &Settings::demandsChanged})
    connect(&settings, signal, this, &SolveSettings::refresh);
  refresh();
}

QWidget* SolveSettings::makeBudget() {
  m_budget->setRange(0.001, kMostGiB);
  m_budget->setDecimals(3);
  m_budget->setAccessibleName(QStringLiteral("Memory budget"));
  m_unit->setAccessibleName(QStringLiteral("Unit of the memory budget"));
  m_unit->addItem(QStringLiteral("GiB"), QVariant::fromValue<qlonglong>(kGiB));
  m_unit->addItem(QStringLiteral("MiB"), QVariant::fromValue<qlonglong>(kMiB));
  m_hasBudget->setToolTip(QStringLiteral("Off: the whole device memory. Only the engine optimal uses the budget."));
  auto* row = new QWidget;
  auto* layout = new QHBoxLayout(row);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_hasBudget);
  layout->addWidget(m_budget, 1);
  layout->addWidget(m_unit);
  connect(m_hasBudget, &QCheckBox::clicked, this, &SolveSettings::readBudget);
  connect(m_unit, &QComboBox::activated, this, &SolveSettings::readBudget);
  connect(m_budget, &QDoubleSpinBox::editingFinished, this, &SolveSettings::readBudget);
  return row;
}

QLineEdit* SolveSettings::makePatterns(const QString& hint, Result<void> (Settings::*apply)(std::vector<std::string>)) {
  auto* line = new QLineEdit;
  line->setPlaceholderText(hint);
  connect(line, &QLineEdit::editingFinished, this, [this, line, apply] {
    const auto done = (m_settings.*apply)(patternsOf(line->text()));
    m_trouble->setVisible(!done);
    if (!done) m_trouble->setText(toQ(done.error().message));
    window()->adjustSize();  // its lines must not shrink the others
  });
  return line;
}

void SolveSettings::readBudget() {
  const bool isOn = m_hasBudget->isChecked();
  m_budget->setEnabled(isOn);
  m_unit->setEnabled(isOn);
  const auto unit = static_cast<double>(m_unit->currentData().toLongLong());
  const auto bytes = static_cast<std::int64_t>(m_budget->value() * unit);
  const std::optional<std::int64_t> budget = isOn ? std::optional(bytes) : std::nullopt;
  if (budget == m_settings.options().cost.memoryBudget) return;
  m_settings.setMemoryBudget(budget);
  emit changedByUser();
}

void SolveSettings::showBudget(std::optional<std::int64_t> bytes) {
  m_hasBudget->setChecked(bytes.has_value());
  m_budget->setEnabled(bytes.has_value());
  m_unit->setEnabled(bytes.has_value());
  const std::int64_t shown = m_settings.options().cost.budgetBytes();
  const auto unit = static_cast<double>(m_unit->currentData().toLongLong());
  if (static_cast<std::int64_t>(m_budget->value() * unit) == shown) return;
  m_unit->setCurrentIndex(shown < kGiB ? 1 : 0);
  m_budget->setValue(static_cast<double>(shown) / static_cast<double>(m_unit->currentData().toLongLong()));
}

void SolveSettings::refresh() {
  const pipeline::SolveOptions& settings = m_settings.options();
  const QSignalBlocker budget(m_budget), unit(m_unit), slack(m_slack);
  m_candidateSet->setCurrentIndex(settings.candidateSet ? m_candidateSet->findData(int(*settings.candidateSet)) : 0);
  const solve::DeviceProfile& profile = settings.cost.profile;
  if (m_device->findData(toQ(profile.name)) < 0) m_device->addItem(toQ(profile.title), toQ(profile.name));
  m_device->setCurrentIndex(m_device->findData(toQ(profile.name)));
  m_deviceFacts->setText(factsText(profile));
  m_training->setChecked(settings.cost.isTraining);
  m_optimizer->setCurrentIndex(m_optimizer->findData(int(settings.cost.optimizer)));
  m_optimizer->setEnabled(settings.cost.isTraining);
  m_checkpoints->setChecked(settings.cost.checkpointsActivations);
  m_checkpoints->setEnabled(settings.cost.isTraining);
  const pipeline::Model* model = m_opened.model().get();
  m_dropout->setChecked(settings.trainsWithDropout);
  m_dropout->setEnabled(settings.cost.isTraining && !(model && model->exported));
  m_dropout->setToolTip(model && model->exported
                            ? QStringLiteral("An exported program keeps the dropout of its export.")
                        : model && model->info.dropouts.empty()
                            ? QStringLiteral("This model has no dropout: all probabilities in its config are 0.")
                        : model ? QStringLiteral("Dropout of this model: %1.").arg(toQ(model->info.dropouts))
                                : QString());
  showBudget(settings.cost.memoryBudget);
  m_slack->setValue(settings.cost.slackPercent);
  const auto show = [](QLineEdit* line, const std::vector<std::string>& patterns) {
    if (patternsOf(line->text()) != patterns) line->setText(textOf(patterns));
  };
  show(m_rulesOff, settings.rulesOff);
  show(m_redistributable, settings.redistributable);
  for (QWidget* widget : {m_rulesOff, m_redistributable}) widget->setEnabled(m_opened.model() != nullptr);
}

namespace {
const QString kGroup = QStringLiteral("solve"), kRanks = QStringLiteral("ranks"), kEngine = QStringLiteral("engine"),
              kCandidateSetKey = QStringLiteral("menu"), kSequence = QStringLiteral("sequence-parallel"),
              kDevice = QStringLiteral("device"), kTraining = QStringLiteral("training"),
              kCheckpoints = QStringLiteral("checkpoint-activations"), kDropout = QStringLiteral("dropout"),
              kOptimizer = QStringLiteral("optimizer"), kBudget = QStringLiteral("memory-budget"),
              kSlack = QStringLiteral("slack");
}

void saveSolveSettings(const Settings& settings) {
  const pipeline::SolveOptions& now = settings.options();
  QSettings stored;
  stored.beginGroup(kGroup);
  stored.setValue(kRanks, now.ranks);
  stored.setValue(kEngine, toQ(solve::toText(now.engine)));
  stored.setValue(kCandidateSetKey, now.candidateSet ? int(*now.candidateSet) : -1);
  stored.setValue(kSequence, int(now.sequenceParallel));
  stored.setValue(kDevice, toQ(now.cost.profile.name));
  stored.setValue(kTraining, now.cost.isTraining);
  stored.setValue(kCheckpoints, now.cost.checkpointsActivations);
  stored.setValue(kDropout, now.trainsWithDropout);
  stored.setValue(kOptimizer, toQ(solve::toText(now.cost.optimizer)));
  stored.setValue(kBudget, QVariant::fromValue<qlonglong>(now.cost.memoryBudget.value_or(0)));
  stored.setValue(kSlack, toQ(fmt::format("{}", now.cost.slackPercent)));
}

/// A missing or invalid entry (older version, edited file) leaves the default.
void loadSolveSettings(Settings& settings) {
  QSettings stored;
  stored.beginGroup(kGroup);
  if (const int ranks = stored.value(kRanks).toInt(); ranks >= 1 && ranks <= pipeline::kMaxRanks)
    settings.setRanks(ranks);
  if (const auto engine = solve::parseEngine(toStd(stored.value(kEngine).toString()))) settings.setEngine(*engine);
  if (const int candidateSet = stored.value(kCandidateSetKey, -1).toInt(); candidateSet == 0 || candidateSet == 1)
    settings.setCandidateSet(static_cast<rules::CandidateSet>(candidateSet));
  if (const int mode = stored.value(kSequence).toInt(); mode >= 0 && mode <= 2)
    settings.setSequenceParallel(static_cast<rules::SequenceParallel>(mode));
  // A missing profile leaves the default, which the toolbar then shows.
  if (const QString device = stored.value(kDevice).toString(); !device.isEmpty())
    static_cast<void>(settings.setDeviceProfile(device));
  settings.setTraining(stored.value(kTraining).toBool());
  settings.setCheckpointsActivations(stored.value(kCheckpoints).toBool());
  settings.setTrainsWithDropout(stored.value(kDropout).toBool());
  if (const auto optimizer = solve::parseOptimizer(toStd(stored.value(kOptimizer).toString())))
    settings.setOptimizer(*optimizer);
  if (const auto slack = solve::parseSlack(toStd(stored.value(kSlack).toString()))) settings.setSlack(*slack);
  if (const qlonglong budget = stored.value(kBudget).toLongLong(); budget > 0) settings.setMemoryBudget(budget);
}

}  // namespace cleave::views
