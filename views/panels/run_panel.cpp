#include "views/panels/run_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableWidget>
#include <QVBoxLayout>

#include "base/json.h"
#include "base/shell_word.h"
#include "plan/headline.h"
#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/panels/cluster_dialog.h"
#include "views/panels/rank_bars.h"

#include <nlohmann/json.hpp>

namespace cleave::views {

namespace {
constexpr int kMaxRanks = 64;

struct Counts {
  std::int64_t allReduce = 0, allGather = 0, reduceScatter = 0;
};
Counts planned(const plan::Plan& plan) {
  Counts counts;
  for (const plan::CollectivePlan& collective : plan.collectives) {
    if (collective.kind == rules::CollectiveKind::AllReduce)
      ++counts.allReduce;
    else if (collective.kind == rules::CollectiveKind::AllGather)
      ++counts.allGather;
    else
      ++counts.reduceScatter;
  }
  return counts;
}

QString countsText(const Counts& counts) {
  return QObject::tr("%1 all-reduce, %2 all-gather, %3 reduce-scatter")
      .arg(counts.allReduce)
      .arg(counts.allGather)
      .arg(counts.reduceScatter);
}
}  // namespace

/// "1 element outside the tolerance, 2 not a number"; empty: none of either.
QString deviationText(const pipeline::OutputDifference& output) {
  QStringList parts;
  if (output.outside > 0) parts << QObject::tr("%1 outside").arg(output.outside);
  if (output.notANumber > 0) parts << QObject::tr("%1 not a number").arg(output.notANumber);
  return parts.join(QStringLiteral(", "));
}

QString verdictWord(pipeline::RunVerdict verdict) {
  switch (verdict) {
    case pipeline::RunVerdict::Passed: return QObject::tr("Passed");
    case pipeline::RunVerdict::NotChecked: return QObject::tr("Not checked");
    case pipeline::RunVerdict::Failed: break;
  }
  return QObject::tr("Failed");
}

std::vector<pipeline::MemoryCheck> memoryBeforeRun(const plan::Plan* plan, int ranks, launch::Backend backend) {
  const auto resolved = launch::resolveBackend(backend, ranks);
  if (!plan || plan->ranks != ranks || !resolved) return {};
  return {pipeline::checkMemory(*plan, *resolved), pipeline::checkUnsplitMemory(*plan)};
}

namespace {
QString weightsText(const plan::Plan& plan) {
  if (plan.model.hasWeights) return QObject::tr("Weights are here: each rank reads only its own part.");
  return plan.model.isExported
             ? QObject::tr(
                   "No weights in this archive that can be read: random ones from seed %1. Model › Capture "
                   "Options takes a file with its own.")
                   .arg(plan.seed)
             : QObject::tr("No weights in this folder: random ones from seed %1.").arg(plan.seed);
}
}  // namespace

std::vector<RunCheck> checksBeforeRun(const plan::Plan* plan, int ranks, launch::Backend backend,
                                      const QString& whyNot) {
  std::vector<RunCheck> checks;
  const int gpus = launch::localGpuCount();
  std::string why;
  if (const auto resolved = launch::resolveBackend(backend, ranks, &why); !resolved)
    checks.push_back({false, toQ(resolved.error().message)});
  else if (gpus == 0)
    checks.push_back({true, QObject::tr("No GPU here: CPU ranks over Gloo.")});
  else if (*resolved == launch::Backend::Nccl)
    checks.push_back(
        {true,
         QObject::tr("%1 of %2 over NCCL.").arg(ranks).arg(countedText(static_cast<std::uint64_t>(gpus), "GPU"))});
  else
    checks.push_back({true, why.empty() ? QObject::tr("CPU ranks over Gloo.") : toQ(why)});
  if (!whyNot.isEmpty()) {
    checks.push_back({false, whyNot});
    return checks;
  }
  if (!plan) {
    checks.push_back({true, QObject::tr("No plan yet: the model is solved first.")});
    return checks;
  }
  if (plan->ranks != ranks)
    checks.push_back(
        {true,
         QObject::tr("The plan is for %1: it is solved again for %2 first.").arg(ranksText(plan->ranks)).arg(ranks)});
  checks.push_back({true, weightsText(*plan)});
  if (plan->ranks == ranks) {
    checks.push_back(
        {true, QObject::tr("The program of a forward pass needs %1 per rank, of it %2 parameters and %3 activations.")
                   .arg(bytesText(plan->memory.total()), bytesText(plan->memory.parameters),
                        bytesText(plan->memory.peakActivations))});
    if (const std::string notKept = plan::notKeptText(*plan); !notKept.empty()) checks.push_back({true, toQ(notKept)});
    for (const pipeline::MemoryCheck& memory : memoryBeforeRun(plan, ranks, backend))
      checks.push_back({memory.fits(), toQ(memory.text)});
    checks.push_back({true, QObject::tr("Planned: %1.").arg(countsText(planned(*plan)))});
    for (const std::string& warning : plan->warnings) checks.push_back({false, prose(warning)});
  }
  return checks;
}

QString runCommand(const Runs& runs, int ranks, launch::Backend backend, bool ignoresMemory) {
  QStringList words = runs.arguments(ranks);
  if (words.isEmpty()) return {};
  words.prepend(QStringLiteral("run"));
  words.prepend(QStringLiteral("cleave-cli"));
  if (backend != launch::Backend::Auto) words << QStringLiteral("--backend") << toQ(launch::toText(backend));
  if (ignoresMemory) words << QStringLiteral("--ignore-memory");
  for (QString& word : words) word = toQ(shellWord(toStd(word)));
  return words.join(QLatin1Char(' '));
}

QString runToJson(const RunState& state) {
  pipeline::RunReport stopped;
  stopped.verdict = pipeline::RunVerdict::NotChecked;
  stopped.backend = state.backend;
  stopped.notes.push_back(toStd(state.failure));
  auto root = nlohmann::ordered_json::parse(pipeline::toJson(state.report ? *state.report : stopped, *state.plan));
  for (const RankView& rank : state.monitor->snapshot())
    root["watched"].push_back({{"rank", rank.rank},
                               {"state", toStd(rank.state())},
                               {"peak_memory", rank.memory.peak.program},
                               {"peak_rss", rank.memory.peak.process},
                               {"process_bytes_10hz", rank.history}});
  return toQ(jsonText(root, 1));
}

QString runToCsv(const RunState& state) {
  QString csv = QStringLiteral("rank,sample,process_bytes\n");
  for (const RankView& rank : state.monitor->snapshot())
    for (std::size_t i = 0; i < rank.history.size(); ++i)
      csv += QStringLiteral("%1,%2,%3\n").arg(rank.rank).arg(i).arg(rank.history[i]);
  return csv;
}

RunPanel::RunPanel(const OpenedModel& opened, const Settings& settings, const Plans& plans, Runs& runs,
                   const Jobs& jobs, Files& files, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_plans(plans),
      m_runs(runs),
      m_jobs(jobs),
      m_files(files),
      m_ranks(new QSpinBox),
      m_backend(new QComboBox),
      m_start(new QPushButton(tr("Run"))),
      m_stop(new QPushButton(tr("Stop"))),
      m_export(new QPushButton(tr("Export…"))),
      m_checks(new QLabel),
      m_insist(new QCheckBox(tr("Run although memory does not suffice"))),
      m_command(new QLabel),
      m_elsewhere(new QPushButton(tr("Cluster…"))),
      m_bars(new RankBars),
      m_scroll(new QScrollArea),
      m_verdict(new QLabel),
      m_outputs(new QTableWidget(0, 4)),
      m_log(new QPlainTextEdit) {
  m_ranks->setRange(1, kMaxRanks);
  m_ranks->setValue(settings.options().ranks);
  m_ranks->setAccessibleName(tr("Ranks of the run"));
  m_backend->addItem(tr("auto"), int(launch::Backend::Auto));
  m_backend->addItem(tr("gloo (CPU)"), int(launch::Backend::Gloo));
  m_backend->addItem(tr("nccl (GPU)"), int(launch::Backend::Nccl));
  m_backend->setAccessibleName(tr("Backend"));
  for (QLabel* label : {m_checks, m_command, m_verdict}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::RichText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setMinimumWidth(1);  // a path that cannot be broken does not widen the panel
  }
  m_elsewhere->setToolTip(tr("The commands that run the plan on several machines"));
  m_command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_outputs->setHorizontalHeaderLabels({tr("Output"), tr("Max difference"), tr("Of the tolerance"), tr("Within")});
  m_outputs->verticalHeader()->hide();
  m_outputs->setShowGrid(false);
  m_outputs->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_outputs->horizontalHeader()->setStretchLastSection(true);
  m_outputs->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  m_log->setReadOnly(true);
  m_log->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_log->setMinimumHeight(60);
  m_log->setFrameShape(QFrame::NoFrame);

  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Ranks")));
  bar->addWidget(m_ranks);
  bar->addWidget(m_backend);
  bar->addWidget(m_start);
  bar->addWidget(m_stop);
  bar->addStretch();
  bar->addWidget(m_elsewhere);
  auto* content = new QWidget;
  auto* layout = new QVBoxLayout(content);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->setSpacing(6);
  layout->addLayout(bar);
  layout->addWidget(m_checks);
  layout->addWidget(m_insist);
  layout->addWidget(m_command);
  layout->addWidget(m_bars);
  auto* verdict = new QHBoxLayout;
  verdict->addWidget(m_verdict, 1, Qt::AlignTop);
  verdict->addWidget(m_export, 0, Qt::AlignTop);
  layout->addLayout(verdict);
  layout->addWidget(m_outputs);
  layout->addWidget(m_log, 1);
  layout->addStretch();
  m_scroll->setWidget(content);
  m_scroll->setWidgetResizable(true);
  m_scroll->setFrameShape(QFrame::NoFrame);
  m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  m_scroll->setMinimumWidth(bar->minimumSize().width() + 16 + m_scroll->verticalScrollBar()->sizeHint().width());
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(m_scroll);

  connect(m_start, &QPushButton::clicked, this, [this] { run(m_ranks->value()); });
  connect(m_insist, &QCheckBox::toggled, this, &RunPanel::refreshSetup);
  connect(m_stop, &QPushButton::clicked, &runs, &Runs::stop);
  connect(m_export, &QPushButton::clicked, this, &RunPanel::exportRun);
  connect(m_elsewhere, &QPushButton::clicked, this, &RunPanel::showCluster);
  connect(m_ranks, &QSpinBox::valueChanged, this, &RunPanel::refreshSetup);
  connect(m_backend, &QComboBox::currentIndexChanged, this, &RunPanel::refreshSetup);
  connect(m_bars, &RankBars::rankChosen, this, &RunPanel::showLog);
  connect(&settings, &Settings::changed, this, [this] { m_ranks->setValue(m_settings.options().ranks); });
  connect(&jobs, &Jobs::activityChanged, this, &RunPanel::refreshSetup);
  connect(&opened, &OpenedModel::changed, this, &RunPanel::refreshSetup);
  for (const auto signal : {&Settings::demandsChanged, &Settings::changed})
    connect(&settings, signal, this, &RunPanel::refreshSetup);
  connect(&runs, &Runs::sampled, this, &RunPanel::refreshRun);
  // A run belongs to its plan: with another plan goes what came out of it.
  connect(&runs, &Runs::changed, this, &RunPanel::refreshAll);
  connect(&plans, &Plans::planChanged, this, &RunPanel::refreshAll);
  refreshSetup();
  refreshRun();
  refreshResult();
}

void RunPanel::refreshAll() {
  m_logRank = 0;
  refreshRun();
  refreshResult();
  refreshSetup();
}

launch::Backend RunPanel::backend() const { return static_cast<launch::Backend>(m_backend->currentData().toInt()); }

QString RunPanel::run(int ranks) {
  m_ranks->setValue(ranks);
  if (m_insist->isVisibleTo(this) && !m_insist->isChecked())
    return tr("%1 To run all the same, tick “%2” in the panel Run.").arg(m_insist->toolTip(), m_insist->text());
  if (lacksWeights(ranks))
    emit weightsWanted(ranks, backend());
  else
    start(ranks);
  return {};
}

void RunPanel::start(int ranks) { m_runs.run(ranks, backend(), insists()); }

void RunPanel::showCluster() {
  if (!m_cluster) m_cluster = new ClusterDialog(m_plans, this);
  m_cluster->setBackend(backend());
  m_cluster->show();
  m_cluster->raise();
}

/// A folder without weights is a configuration, and meant so; an archive has lost them.
bool RunPanel::lacksWeights(int ranks) const {
  const auto& model = m_opened.model();
  return model && model->exported && !model->info.hasWeights && !m_opened.folder().isEmpty() &&
         m_runs.whyNot(ranks).isEmpty() && m_jobs.activity() != Activity::Running;
}

bool RunPanel::insists() const { return m_insist->isVisibleTo(this) && m_insist->isChecked(); }

void RunPanel::refreshSetup() {
  const bool hasModel = m_opened.model() != nullptr;
  const bool isRunning = m_jobs.activity() == Activity::Running;
  const auto memory = memoryBeforeRun(m_plans.plan().get(), m_ranks->value(), backend());
  const auto tooLarge = std::find_if(memory.begin(), memory.end(), [](const auto& check) { return !check.fits(); });
  const bool mustInsist = hasModel && tooLarge != memory.end();
  m_insist->setVisible(mustInsist);
  if (mustInsist) m_insist->setToolTip(toQ(tooLarge->text));
  if (!mustInsist) m_insist->setChecked(false);  // said of this plan, not of the next
  const QString whyNot = hasModel ? m_runs.whyNot(m_ranks->value()) : QString();
  m_start->setEnabled(hasModel && whyNot.isEmpty() && m_jobs.activity() == Activity::Idle &&
                      (!mustInsist || m_insist->isChecked()));
  m_start->setToolTip(whyNot);
  m_stop->setEnabled(isRunning);
  m_start->setText(tr("Run on %1").arg(m_ranks->value()));
  const QString command =
      hasModel && whyNot.isEmpty() ? runCommand(m_runs, m_ranks->value(), backend(), insists()) : QString();
  const RunState* run = m_runs.state();
  const bool hasRanks = run && run->hasRanks();
  m_export->setVisible(hasRanks && !run->isActive);
  m_command->setVisible(!command.isEmpty() && !hasRanks);
  m_elsewhere->setEnabled(m_plans.plan() != nullptr);
  if (!hasModel) {
    m_checks->setText(
        tr("Open a model, and its plan can be run here on ranks of this machine: memory per rank live against the "
           "prediction, and whether the split model computes the same."));
    return;
  }
  m_checks->setVisible(!hasRanks || run->ranks != m_ranks->value());
  const Theme theme = Theme::of(palette());
  QStringList lines;
  for (const RunCheck& check : checksBeforeRun(m_plans.plan().get(), m_ranks->value(), backend(), whyNot))
    lines << QStringLiteral("<span style=\"color:%1\">%2</span> %3")
                 .arg((check.isOk ? theme.good : theme.warning).name(),
                      check.isOk ? QStringLiteral("✓") : QStringLiteral("!"), check.text.toHtmlEscaped());
  m_checks->setText(lines.join(QStringLiteral("<br>")));
  m_command->setText(command.toHtmlEscaped());
  m_command->setToolTip(tr("The same on the command line: %1").arg(command));
}

void RunPanel::refreshRun() {
  const RunState* state = m_runs.state();
  const bool hasRanks = state && state->hasRanks();
  m_bars->setVisible(hasRanks);
  if (!hasRanks) return m_log->hide();
  m_bars->setRanks(state->monitor->snapshot(), state->plan ? state->plan->memory.total() : 0);
  showLog(m_logRank);
}

void RunPanel::showLog(int rank) {
  m_logRank = rank;
  const RunState* state = m_runs.state();
  if (!state) return;
  const auto ranks = state->monitor->snapshot();
  if (rank < 0 || static_cast<std::size_t>(rank) >= ranks.size()) return;
  const QStringList& lines = ranks[static_cast<std::size_t>(rank)].log;
  m_log->setVisible(!lines.isEmpty());
  const QString text = tr("rank %1:\n").arg(rank) + lines.join(QLatin1Char('\n'));
  if (text == m_log->toPlainText()) return;
  m_log->setPlainText(text);
  m_log->moveCursor(QTextCursor::End);
}

void RunPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  refreshSetup();
  refreshResult();
}

void RunPanel::refreshResult() {
  const RunState* state = m_runs.state();
  const bool hasEnded = state && !state->isActive;
  m_verdict->setVisible(hasEnded);
  m_outputs->setVisible(hasEnded && state->report && !state->report->outputs.empty());
  if (!hasEnded) return;
  const Theme theme = Theme::of(palette());
  if (!state->report)
    return m_verdict->setText(QStringLiteral("<b style=\"color:%1\">%2%3</b>")
                                  .arg(theme.conflict.name(), state->hasRanks() ? QString() : tr("Not started: "),
                                       state->failure.toHtmlEscaped()));
  const pipeline::RunReport& report = *state->report;
  const auto& failure = report.outcome.firstFailure;
  QString text = QStringLiteral("<b style=\"color:%1\">%2</b>")
                     .arg((report.verdict == pipeline::RunVerdict::Failed ? theme.conflict : theme.good).name(),
                          verdictWord(report.verdict));
  if (failure)
    text += tr(": rank %1 was the first to fail: it %2. %3")
                .arg(failure->rank)
                .arg(toQ(failure->what).toHtmlEscaped(), toQ(failure->lastWords).toHtmlEscaped());
  else if (report.verdict == pipeline::RunVerdict::NotChecked)
    text += tr(": what was computed was compared with nothing");
  else if (!report.comparedWith.empty())
    text += tr(", compared with %1, %2")
                .arg(toQ(report.comparedWith).toHtmlEscaped(), toQ(pipeline::toleranceText(report)));
  if (!report.outcome.results.empty() && report.outcome.results[0]) {
    const protocol::RankResult& first = *report.outcome.results[0];
    text += tr("<br>Executed: %1; planned: %2.")
                .arg(countsText({first.allReduce, first.allGather, first.reduceScatter}),
                     countsText(planned(*state->plan)));
  }
  for (const std::string& violation : report.violations)
    text += QStringLiteral("<br>") + toQ(violation).toHtmlEscaped();
  for (const std::string& note : report.notes) text += QStringLiteral("<br>") + toQ(note).toHtmlEscaped();
  m_verdict->setText(text);

  m_outputs->setRowCount(static_cast<int>(report.outputs.size()));
  for (int row = 0; row < m_outputs->rowCount(); ++row) {
    const auto& output = report.outputs[static_cast<std::size_t>(row)];
    const QString name =
        output.rank > 0 ? tr("%1 of rank %2").arg(toQ(output.name)).arg(output.rank) : toQ(output.name);
    const QString cells[] = {name, QString::number(output.maxAbs, 'e', 2),
                             tr("%1 %").arg(100 * output.ofTolerance, 0, 'g', 3),
                             output.within() ? tr("yes") : tr("no: %1").arg(deviationText(output))};
    for (int column = 0; column < 4; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      if (column == 1 || column == 2) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      m_outputs->setItem(row, column, item);
    }
  }
  m_outputs->setFixedHeight(m_outputs->horizontalHeader()->sizeHint().height() +
                            std::min(6, m_outputs->rowCount()) * m_outputs->verticalHeader()->defaultSectionSize() + 4);
}

void RunPanel::exportRun() {
  const RunState* state = m_runs.state();
  if (!state) return;
  const QString path = QFileDialog::getSaveFileName(this, tr("Export the run"), QStringLiteral("run.json"),
                                                    tr("JSON (*.json);;Memory samples as CSV (*.csv)"));
  if (path.isEmpty()) return;
  const QString text = path.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive) ? runToCsv(*state) : runToJson(*state);
  m_files.save(path, [text] { return text.toUtf8(); });
}

}  // namespace cleave::views
