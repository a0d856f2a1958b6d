#include "views/run/run_setup.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleValidator>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>

#include "views/base/text.h"
#include "views/widgets/flow_layout.h"

namespace cleave::views {

namespace {
constexpr int kMostRanks = 64;
constexpr int kUsualSteps = 5;

/// A control with its name in front, always in one row.
QWidget* named(const QString& name, QWidget* control) {
  auto* both = new QWidget;
  auto* row = new QHBoxLayout(both);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  auto* label = new QLabel(name);
  label->setBuddy(control);
  row->addWidget(label);
  row->addWidget(control);
  control->setAccessibleName(name);
  return both;
}

QLineEdit* numberEdit(const QString& hint) {
  auto* edit = new QLineEdit;
  edit->setToolTip(hint);
  auto* validator = new QDoubleValidator(0, 1e12, 12, edit);
  validator->setLocale(QLocale::c());
  edit->setValidator(validator);
  edit->setFixedWidth(edit->fontMetrics().horizontalAdvance(QStringLiteral("0.0000001")) + 14);
  return edit;
}

QString numberText(double number) { return QString::number(number, 'g', 12); }
}  // namespace

RunSetup::RunSetup(Runs& runs, const Jobs& jobs, QWidget* parent)
    : QWidget(parent),
      m_runs(runs),
      m_ranks(new QSpinBox),
      m_backend(new QComboBox),
      m_start(new QPushButton(QStringLiteral("Run"))),
      m_stop(new QPushButton(QStringLiteral("Stop"))),
      m_trains(new QCheckBox(QStringLiteral("Train"))),
      m_more(new QMenu(this)),
      m_steps(new QSpinBox),
      m_optimizer(new QComboBox),
      m_learningRate(numberEdit(QStringLiteral("Learning rate (lr in torch.optim)"))),
      m_weightDecay(numberEdit(QStringLiteral("Weight decay (weight_decay in torch.optim)"))),
      m_clipNorm(numberEdit(
          QStringLiteral("Clip the global gradient norm over all ranks to this value. Empty: no clipping."))),
      m_accumulate(new QSpinBox) {
  m_ranks->setRange(1, kMostRanks);
  m_ranks->setToolTip(QStringLiteral("Processes on this machine, each with its shard of the weights"));
  m_backend->addItem(QStringLiteral("auto"), int(launch::Backend::Auto));
  m_backend->addItem(QStringLiteral("gloo (CPU)"), int(launch::Backend::Gloo));
  m_backend->addItem(QStringLiteral("nccl (GPU)"), int(launch::Backend::Nccl));
  m_backend->setAccessibleName(QStringLiteral("Backend"));
  m_backend->setObjectName(QStringLiteral("backend"));
  m_trains->setObjectName(QStringLiteral("train"));
  m_trains->setToolTip(QStringLiteral("Run training steps instead of one forward pass"));
  m_trains->setMinimumHeight(m_start->sizeHint().height());  // on one line with its neighbours
  auto* flow = new FlowLayout(6, 6);
  setLayout(flow);
  flow->addWidget(named(QStringLiteral("Ranks"), m_ranks));
  m_ranks->setAccessibleName(QStringLiteral("Ranks of the run"));  // the toolbar has the plan's ranks
  flow->addWidget(m_backend);
  flow->addWidget(m_start);
  flow->addWidget(m_stop);
  flow->addWidget(m_trains);
  auto* more = new QToolButton;
  more->setText(QStringLiteral("More"));
  more->setToolTip(QStringLiteral("First difference, export, other machines"));
  more->setPopupMode(QToolButton::InstantPopup);
  more->setMenu(m_more);
  more->setMinimumSize(more->sizeHint().width() + 10, m_start->sizeHint().height());  // with room for its arrow
  flow->addWidget(more);
  makeTraining();

  connect(m_start, &QPushButton::clicked, this, &RunSetup::startWanted);
  connect(m_stop, &QPushButton::clicked, &runs, &Runs::stop);
  const auto stopOnlyWhileRunning = [this, &jobs] { m_stop->setEnabled(jobs.activity() == Activity::Running); };
  connect(&jobs, &Jobs::activityChanged, this, stopOnlyWhileRunning);
  stopOnlyWhileRunning();
  for (QSpinBox* box : {m_ranks, m_steps, m_accumulate})
    connect(box, &QSpinBox::valueChanged, this, &RunSetup::applySettings);
  for (QComboBox* box : {m_backend, m_optimizer})
    connect(box, &QComboBox::currentIndexChanged, this, &RunSetup::applySettings);
  for (QLineEdit* edit : {m_learningRate, m_weightDecay, m_clipNorm})
    connect(edit, &QLineEdit::textEdited, this, &RunSetup::applySettings);
  connect(m_trains, &QCheckBox::toggled, this, &RunSetup::applySettings);
  connect(&runs, &Runs::settingsChanged, this, &RunSetup::showSettings);
  showSettings();
}

void RunSetup::makeTraining() {
  m_steps->setRange(1, static_cast<int>(program::kMostSteps));
  m_steps->setValue(kUsualSteps);
  m_accumulate->setRange(1, 1024);
  m_accumulate->setToolTip(QStringLiteral("Micro-batches per step. Their gradients are averaged."));
  for (const program::Optimizer optimizer :
       {program::Optimizer::AdamW, program::Optimizer::Sgd, program::Optimizer::Momentum})
    m_optimizer->addItem(toQ(program::toText(optimizer)), int(optimizer));
  m_clipNorm->setPlaceholderText(QStringLiteral("none"));
  m_training = {named(QStringLiteral("Steps"), m_steps),
                named(QStringLiteral("Optimizer"), m_optimizer),
                named(QStringLiteral("Learning rate"), m_learningRate),
                named(QStringLiteral("Weight decay"), m_weightDecay),
                named(QStringLiteral("Clip norm"), m_clipNorm),
                named(QStringLiteral("Accumulate"), m_accumulate)};
  m_optimizer->setAccessibleName(QStringLiteral("Optimizer of the run"));
  for (QWidget* control : m_training) layout()->addWidget(control);
}

void RunSetup::setStartable(bool isStartable, const QString& whyNot) {
  m_start->setEnabled(isStartable);
  m_start->setToolTip(whyNot);
}

void RunSetup::showSettings() {
  const RunSettings& settings = m_runs.settings();
  const program::Training& training = settings.training;
  const QSignalBlocker a(m_ranks), b(m_backend), c(m_trains), d(m_steps), e(m_optimizer), f(m_accumulate);
  m_ranks->setValue(settings.ranks);
  m_backend->setCurrentIndex(m_backend->findData(int(settings.backend)));
  m_trains->setChecked(training.isAsked());
  for (QWidget* control : m_training) control->setVisible(training.isAsked());
  if (training.isAsked()) m_steps->setValue(static_cast<int>(training.steps));
  m_optimizer->setCurrentIndex(std::max(0, m_optimizer->findData(int(training.optimizer))));
  m_accumulate->setValue(static_cast<int>(training.accumulate));
  const auto show = [](QLineEdit* edit, const QString& text) {
    if (!edit->hasFocus()) edit->setText(text);  // with focus, the number comes from this field
  };
  show(m_learningRate, numberText(training.learningRate));
  show(m_weightDecay, numberText(training.weightDecay));
  show(m_clipNorm, training.clipNorm ? numberText(*training.clipNorm) : QString());
  m_start->setText(QStringLiteral("Run on %1").arg(settings.ranks));
}

void RunSetup::applySettings() {
  RunSettings settings = m_runs.settings();
  settings.ranks = m_ranks->value();
  settings.backend = static_cast<launch::Backend>(m_backend->currentData().toInt());
  program::Training& training = settings.training;
  training.steps = m_trains->isChecked() ? m_steps->value() : 0;
  training.optimizer = static_cast<program::Optimizer>(m_optimizer->currentData().toInt());
  training.learningRate = m_learningRate->text().toDouble();
  training.weightDecay = m_weightDecay->text().toDouble();
  training.clipNorm.reset();
  if (!m_clipNorm->text().isEmpty()) training.clipNorm = m_clipNorm->text().toDouble();
  training.accumulate = m_accumulate->value();
  m_runs.setSettings(settings);
}

}  // namespace cleave::views
