#include "views/run/cluster_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFontDatabase>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "pipeline/run/cluster.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kMaxNodes = 4096;
constexpr int kWidth = 760;

struct Commands {
  bool isThere = false;
  QString text;  ///< commands, or the reason for their absence
};

Commands commandsFor(const std::shared_ptr<const plan::Plan>& plan, Runs& runs, pipeline::Elsewhere elsewhere,
                     const QString& host) {
  if (!plan) return {false, QStringLiteral("There is no plan yet. Solve first.")};
  if (!host.isEmpty()) {
    const auto at = protocol::parseHostPort(toStd(host), "Node 0", launch::kMasterPort);
    if (!at) return {false, toQ(at.error().message)};
    elsewhere.host = at->host;
    elsewhere.port = at->port;
  }
  pipeline::RunRequest request;
  request.plan = plan;
  request.skipWeights = !plan->model.hasWeights;
  RunSettings ofNode = runs.settings();
  ofNode.ranks = std::max(1, request.mesh().ranks() / elsewhere.nodes);
  request.backend = ofNode.backend;
  if (request.backend == launch::Backend::Auto) {
    const auto choice = runs.backendFor(ofNode);
    if (!choice) return {false, QStringLiteral("Asking CUDA for its GPUs …")};
    if (!*choice) return {false, toQ(choice->error().message)};
    request.backend = (*choice)->backend;
  }
  const auto text = pipeline::clusterText(request, elsewhere, Progress());
  return {text.has_value(), toQ(text ? *text : text.error().message)};
}
}  // namespace

ClusterDialog::ClusterDialog(const Plans& plans, Runs& runs, QWidget* parent)
    : QDialog(parent),
      m_plans(plans),
      m_runs(runs),
      m_launcher(new QComboBox),
      m_nodes(new QSpinBox),
      m_host(new QLineEdit(toQ(pipeline::ownHostName()))),
      m_planFile(new QLineEdit(QStringLiteral("plan.json"))),
      m_text(new QPlainTextEdit),
      m_copy(nullptr) {
  setWindowTitle(QStringLiteral("Run on a cluster"));
  setMinimumWidth(kWidth);
  m_launcher->addItem(QStringLiteral("torchrun (PyTorch): one command per node"),
                      int(launch::ClusterLauncher::Torchrun));
  m_launcher->addItem(QStringLiteral("srun (Slurm): one command in an allocation"), int(launch::ClusterLauncher::Srun));
  m_nodes->setRange(1, kMaxNodes);
  m_nodes->setValue(2);
  m_host->setToolTip(QStringLiteral("HOST or HOST:PORT of the rendezvous. Empty with Slurm: found automatically."));
  m_planFile->setToolTip(QStringLiteral("Path of the plan on each node. File › Export Plan writes it."));
  m_text->setReadOnly(true);
  m_text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_text->setLineWrapMode(QPlainTextEdit::WidgetWidth);
  m_text->setAccessibleName(QStringLiteral("Commands"));
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
  form->addRow(QStringLiteral("&Launcher"), m_launcher);
  form->addRow(QStringLiteral("&Nodes"), m_nodes);
  form->addRow(QStringLiteral("N&ode 0"), m_host);
  form->addRow(QStringLiteral("&Plan file"), m_planFile);
  auto* listening = new QLabel(
      QStringLiteral("To follow the ranks from here and check their results, run “cleave-cli run PLAN --listen "
                     "ADDRESS” and start the ranks as it prints."));
  listening->setWordWrap(true);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  m_copy = buttons->addButton(QStringLiteral("&Copy"), QDialogButtonBox::ActionRole);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(m_text, 1);
  layout->addWidget(listening);
  layout->addWidget(buttons);

  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
  connect(m_copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(text()); });
  connect(m_launcher, &QComboBox::currentIndexChanged, this, &ClusterDialog::refresh);
  connect(m_nodes, &QSpinBox::valueChanged, this, &ClusterDialog::refresh);
  for (QLineEdit* edit : {m_host, m_planFile}) connect(edit, &QLineEdit::textChanged, this, &ClusterDialog::refresh);
  connect(&plans, &Plans::planChanged, this, &ClusterDialog::refresh);
  connect(&runs, &Runs::settingsChanged, this, &ClusterDialog::refresh);
  refresh();
}

QString ClusterDialog::text() const { return m_text->toPlainText(); }

void ClusterDialog::refresh() {
  pipeline::Elsewhere elsewhere;
  elsewhere.launcher = static_cast<launch::ClusterLauncher>(m_launcher->currentData().toInt());
  elsewhere.nodes = m_nodes->value();
  elsewhere.planFile = toStd(m_planFile->text());
  // Slurm's first node may be another machine, and a single node needs no name.
  const bool needsHost = elsewhere.launcher == launch::ClusterLauncher::Torchrun && elsewhere.nodes > 1;
  m_host->setEnabled(needsHost);
  const Commands commands =
      commandsFor(m_plans.plan(), m_runs, elsewhere, needsHost ? m_host->text().trimmed() : QString());
  m_text->setPlainText(commands.text);
  m_copy->setEnabled(commands.isThere);
}

}  // namespace cleave::views
