#include "views/run/overview_page.h"

#include <QCheckBox>
#include <QFontDatabase>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QTableWidget>
#include <QVBoxLayout>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/run/line_chart.h"
#include "views/run/rank_bars.h"
#include "views/run/run_verdict.h"

namespace cleave::views {

namespace {
constexpr int kMostOutputRows = 8, kSideBySide = 640;

QLabel* makeText() {
  auto* label = new QLabel;
  label->setWordWrap(true);
  label->setTextFormat(Qt::RichText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label->setMinimumWidth(1);  // an unbreakable path must not widen the view
  return label;
}

ChartData memoryChart(const RunState& run, const std::vector<RankView>& ranks, int chosen) {
  ChartData data{.title = QStringLiteral("Memory of the program"),
                 .empty = QStringLiteral("No rank has reported its memory yet."),
                 .x = ChartUnit::Milliseconds,
                 .y = ChartUnit::Bytes};
  for (const RankView& rank : ranks) {
    ChartLine line{QStringLiteral("rank %1").arg(rank.rank), {}, rank.rank == chosen};
    for (const MemoryPoint& point : rank.history) {
      const auto bytes = static_cast<double>(point.program);
      line.points.emplace_back(static_cast<double>(point.atMs), bytes);
    }
    data.lines.push_back(std::move(line));
  }
  if (run.plan)
    data.marks.push_back(
        {QStringLiteral("predicted"), static_cast<double>(predictedBytes(*run.plan, run.settings.training))});
  // Samples are taken ten times a second and usually miss the peak.
  if (static_cast<std::size_t>(chosen) < ranks.size())
    if (const std::int64_t peak = ranks[static_cast<std::size_t>(chosen)].memory.peak.program; peak > 0)
      data.marks.push_back({QStringLiteral("peak of rank %1:").arg(chosen), static_cast<double>(peak)});
  if (static_cast<std::size_t>(chosen) < ranks.size())
    for (const PhaseBegin& phase : ranks[static_cast<std::size_t>(chosen)].phases)
      data.sections.push_back({static_cast<double>(phase.atMs), toQ(protocol::toText(phase.phase))});
  return data;
}

ChartData lossChart(const RunState& run) {
  ChartData data{.title = QStringLiteral("Loss"),
                 .empty = QStringLiteral("No training step has finished yet."),
                 .x = ChartUnit::Whole,
                 .y = ChartUnit::Number,
                 .xName = QStringLiteral("step")};
  ChartLine line;
  for (const protocol::TrainingStep& step : run.report ? run.report->steps : run.monitor->steps())
    line.points.emplace_back(static_cast<double>(step.step), step.loss);
  data.lines.push_back(std::move(line));
  return data;
}

QString rankResultText(const RunState& run) {
  const auto& results = run.report->outcome.results;
  if (results.empty() || !results[0]) return {};
  const protocol::RankResult& first = *results[0];
  const QString executed = countsText({first.allReduce, first.allGather, first.reduceScatter});
  if (run.settings.training.isAsked()) return QStringLiteral("Executed: %1.").arg(executed);
  return QStringLiteral("Executed: %1; planned: %2.").arg(executed, countsText(plannedCollectives(*run.plan)));
}
}  // namespace

QString deviationText(const pipeline::OutputDifference& output) {
  QStringList parts;
  if (output.outside > 0) parts << QStringLiteral("%1 outside").arg(output.outside);
  if (output.notANumber > 0) parts << QStringLiteral("%1 NaN").arg(output.notANumber);
  return parts.join(QStringLiteral(", "));
}

OverviewPage::OverviewPage(const Runs& runs, QWidget* parent)
    : QScrollArea(parent),
      m_runs(runs),
      m_content(new QWidget),
      m_checks(makeText()),
      m_startAnyway(new QCheckBox(QStringLiteral("Run even if memory is predicted to be too small"))),
      m_command(makeText()),
      m_charts(new QWidget),
      m_memory(new LineChart),
      m_losses(new LineChart),
      m_bars(new RankBars),
      m_outcome(makeText()),
      m_outputs(new QTableWidget(0, 4)) {
  m_startAnyway->setObjectName(QStringLiteral("start-anyway"));
  m_command->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_outputs->setHorizontalHeaderLabels({QStringLiteral("Output"), QStringLiteral("Max difference"),
                                        QStringLiteral("Share of tolerance"), QStringLiteral("Within")});
  m_outputs->verticalHeader()->hide();
  m_outputs->setShowGrid(false);
  m_outputs->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_outputs->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  for (const int numbers : {1, 2})
    m_outputs->horizontalHeaderItem(numbers)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  m_outputs->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_outputs->horizontalHeader()->setStretchLastSection(true);
  m_outputs->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  auto* grid = new QGridLayout(m_charts);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setSpacing(8);
  auto* layout = new QVBoxLayout(m_content);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->setSpacing(6);
  for (QWidget* widget :
       std::initializer_list<QWidget*>{m_checks, m_startAnyway, m_command, m_charts, m_bars, m_outcome, m_outputs})
    layout->addWidget(widget);
  layout->addStretch();
  setWidget(m_content);
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  connect(m_startAnyway, &QCheckBox::toggled, this, &OverviewPage::startAnywayChanged);
  connect(m_bars, &RankBars::rankChosen, this, [this](int rank) {
    if (const RunState* run = m_runs.state()) showCharts(*run);
    emit rankChosen(rank);
  });
}

void OverviewPage::showChecks(const std::vector<RunCheck>& checks, const QString& command) {
  const Theme theme = Theme::of(palette());
  QStringList lines;
  for (const RunCheck& check : checks)
    lines << QStringLiteral("<span style=\"color:%1\">%2</span> %3")
                 .arg((check.isOk ? theme.good : theme.warning).name(),
                      check.isOk ? QStringLiteral("✓") : QStringLiteral("!"), check.text.toHtmlEscaped());
  m_checks->setText(lines.join(QStringLiteral("<br>")));
  m_checks->setVisible(!lines.isEmpty());
  m_command->setText(command.toHtmlEscaped());
  m_command->setVisible(!command.isEmpty());
}

void OverviewPage::showEmpty(const QString& sentence) {
  m_checks->setText(sentence.toHtmlEscaped());
  m_checks->show();
  m_command->hide();
}

void OverviewPage::offerStartAnyway(const QString& why) {
  m_startAnyway->setVisible(!why.isEmpty());
  m_startAnyway->setToolTip(why);
  if (why.isEmpty()) m_startAnyway->setChecked(false);  // valid for this plan only
}

bool OverviewPage::wantsStartAnyway() const { return m_startAnyway->isVisibleTo(this) && m_startAnyway->isChecked(); }
QString OverviewPage::startAnywayText() const { return m_startAnyway->text(); }

void OverviewPage::showRun() {
  const RunState* run = m_runs.state();
  const bool hasRanks = run && run->hasRanks();
  m_charts->setVisible(hasRanks);
  m_bars->setVisible(hasRanks);
  if (hasRanks) {
    m_bars->setRanks(run->monitor->snapshot(), run->plan ? predictedBytes(*run->plan, run->settings.training) : 0);
    showCharts(*run);
  }
  const bool hasEnded = run && !run->isActive && run->report;
  const QString difference = differenceText(m_runs.firstDifference());
  m_outcome->setVisible(hasEnded || !difference.isEmpty());
  m_outputs->setVisible(hasEnded && !run->report->outputs.empty());
  QStringList lines = difference.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
  if (hasEnded) lines << outcomeLines(*run);
  for (QString& line : lines) line = line.toHtmlEscaped();
  m_outcome->setText(lines.join(QStringLiteral("<br>")));
  if (hasEnded) showOutputs(*run->report);
}

void OverviewPage::showCharts(const RunState& run) {
  m_memory->setData(memoryChart(run, run.monitor->snapshot(), m_bars->chosen()));
  const bool trains = run.settings.training.isAsked();
  m_losses->setVisible(trains);
  if (trains) m_losses->setData(lossChart(run));
  // Side by side if there is room for two.
  auto* grid = static_cast<QGridLayout*>(m_charts->layout());
  const bool isWide = viewport()->width() >= kSideBySide;
  grid->addWidget(m_losses, 0, 0);
  grid->addWidget(m_memory, trains && !isWide ? 1 : 0, trains && isWide ? 1 : 0);
  m_memory->show();
  m_charts->setFixedHeight(trains && !isWide ? 380 : std::clamp(viewport()->height() * 2 / 5, 170, 320));
}

void OverviewPage::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  if (const RunState* run = m_runs.state(); run && run->hasRanks()) showCharts(*run);
}

QStringList OverviewPage::outcomeLines(const RunState& run) {
  const pipeline::RunReport& report = *run.report;
  QStringList lines;
  if (const auto& failure = report.outcome.firstFailure)
    lines << QStringLiteral("Rank %1 failed first: it %2. %3")
                 .arg(failure->rank)
                 .arg(toQ(failure->what), toQ(failure->lastMessage));
  else if (!report.comparedWith.empty())
    lines
        << QStringLiteral("Compared with %1, %2.").arg(toQ(report.comparedWith), toQ(pipeline::toleranceText(report)));
  if (const QString executed = rankResultText(run); !executed.isEmpty()) lines << executed;
  for (const auto* sentences : {&report.violations, &report.notes})
    for (const std::string& sentence : *sentences) lines << toQ(sentence);
  return lines;
}

/// The largest deviation is first. For training these are all parameters.
void OverviewPage::showOutputs(const pipeline::RunReport& report) {
  std::vector<const pipeline::OutputDifference*> outputs;
  for (const auto& output : report.outputs) outputs.push_back(&output);
  std::stable_sort(outputs.begin(), outputs.end(), [](const auto* a, const auto* b) {
    return std::pair(!a->within(), a->ofTolerance) > std::pair(!b->within(), b->ofTolerance);
  });
  m_outputs->setRowCount(static_cast<int>(outputs.size()));
  for (int row = 0; row < m_outputs->rowCount(); ++row) {
    const pipeline::OutputDifference& output = *outputs[static_cast<std::size_t>(row)];
    const QString name =
        output.rank > 0 ? QStringLiteral("%1 of rank %2").arg(toQ(output.name)).arg(output.rank) : toQ(output.name);
    const QString cells[] = {
        name, QString::number(output.maxAbs, 'e', 2), QStringLiteral("%1 %").arg(100 * output.ofTolerance, 0, 'g', 3),
        output.within() ? QStringLiteral("yes") : QStringLiteral("no: %1").arg(deviationText(output))};
    for (int column = 0; column < 4; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      if (column == 1 || column == 2) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      m_outputs->setItem(row, column, item);
    }
  }
  const int rows = std::min(kMostOutputRows, m_outputs->rowCount());
  m_outputs->setFixedHeight(m_outputs->horizontalHeader()->sizeHint().height() +
                            rows * m_outputs->verticalHeader()->defaultSectionSize() + 4);
}

}  // namespace cleave::views
