#include "views/run/lanes_page.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QStackedLayout>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "plan/build/node_costs.h"
#include "solve/cost/cost_model.h"
#include "views/base/rich_text.h"
#include "views/base/text.h"
#include "views/run/lane_view.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

namespace {
constexpr double kZoomOfButton = 2;
constexpr std::size_t kMostOperators = 200;

QString summary(const RunState& run) {
  const pipeline::Timeline& timeline = run.report->timeline;
  const plan::Plan& plan = *run.plan;
  const auto text = [](std::int64_t nanoseconds) {
    return toQ(solve::timeText(Femtoseconds::ofSeconds(static_cast<double>(nanoseconds) / 1e9)));
  };
  const Femtoseconds predicted = plan::stepTime(plan, run.settings.training.isAsked());
  QString sentence =
      QStringLiteral("The step took %1; predicted on %2: %3.")
          .arg(text(timeline.totalNs), toQ(plan.spec.cost.profile.name), toQ(solve::timeText(predicted)));
  const QString waited = toQ(pipeline::waitedText(timeline, plan)).simplified();
  if (waited.isEmpty()) return sentence;
  sentence += QLatin1Char(' ') + capitalized(waited);
  return sentence.endsWith(QLatin1Char('.')) ? sentence : sentence + QLatin1Char('.');
}

QTableWidget* makeOperatorTable() {
  auto* table = new QTableWidget(0, 5);
  table->setHorizontalHeaderLabels({QStringLiteral("Longest"), QStringLiteral("Operator"), QStringLiteral("Module"),
                                    QStringLiteral("Measured"), QStringLiteral("Predicted")});
  styleTable(*table);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setSectionResizeMode(2, QHeaderView::Stretch);
  table->setSelectionMode(QAbstractItemView::SingleSelection);
  table->setAccessibleName(QStringLiteral("Slowest operators"));
  return table;
}
}  // namespace

LanesPage::LanesPage(const Runs& runs, Selection& selection, Files& files, QWidget* parent)
    : QWidget(parent),
      m_runs(runs),
      m_selection(selection),
      m_files(files),
      m_lanes(new LaneView),
      m_legend(new LaneLegend),
      m_operators(makeOperatorTable()),
      m_waited(new QLabel),
      m_chosen(new ElidedLabel),
      m_save(new QPushButton(QStringLiteral("Export Trace…"))),
      m_empty(makeEmptyLabel(QStringLiteral(
          "After a run, this shows each rank's timeline: compute, collectives, and waiting for other ranks."))),
      m_content(new QWidget),
      m_stack(new QStackedLayout(this)) {
  m_waited->setWordWrap(true);
  m_waited->setMinimumWidth(1);
  m_waited->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_chosen->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_save->setToolTip(QStringLiteral("Write a file for chrome://tracing and ui.perfetto.dev"));
  auto* head = new QHBoxLayout;
  head->addWidget(m_waited, 1);
  const auto addZoom = [&](const QString& text, const QString& tip, std::function<void()> act) {
    auto* button = new QToolButton;
    button->setText(text);
    button->setToolTip(tip);
    connect(button, &QToolButton::clicked, this, [act = std::move(act)] { act(); });
    head->addWidget(button);
  };
  addZoom(QStringLiteral("+"), QStringLiteral("Zoom in (+, or the wheel)"), [this] { m_lanes->zoomBy(kZoomOfButton); });
  addZoom(QStringLiteral("−"), QStringLiteral("Zoom out (-)"), [this] { m_lanes->zoomBy(1 / kZoomOfButton); });
  addZoom(QStringLiteral("All"), QStringLiteral("The whole step (0)"), [this] { m_lanes->showAll(); });
  head->addWidget(m_save);
  auto* layout = new QVBoxLayout(m_content);
  layout->setContentsMargins(8, 4, 8, 6);
  layout->addLayout(head);
  layout->addWidget(m_legend);
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(m_lanes);
  split->addWidget(m_operators);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  layout->addWidget(split, 1);
  layout->addWidget(m_chosen);
  connect(m_operators, &QTableWidget::currentCellChanged, this, [this](int row) {
    const QTableWidgetItem* item = m_operators->item(row, 0);
    if (const auto target = item ? targetOf(m_operators->model()->index(row, 0)) : std::nullopt)
      m_selection.follow(*target);
  });
  connect(m_operators, &QTableWidget::cellDoubleClicked, this, &LanesPage::graphWanted);
  m_stack->addWidget(m_empty);
  m_stack->addWidget(m_content);
  connect(m_save, &QPushButton::clicked, this, &LanesPage::askForFile);
  connect(m_lanes, &LaneView::chosenChanged, this, &LanesPage::showChosen);
  connect(m_lanes, &LaneView::nodeChosen, &selection, &Selection::focusNode);
  connect(m_lanes, &LaneView::nodeActivated, this, &LanesPage::graphWanted);
  connect(&selection, &Selection::focusChanged, this, [this] { m_lanes->setFocusNode(m_selection.focus().node); });
  showChosen();
}

void LanesPage::showRun() {
  const RunState* run = m_runs.state();
  const bool hasLanes = run && run->report && !run->report->timeline.isEmpty();
  m_stack->setCurrentWidget(hasLanes ? m_content : static_cast<QWidget*>(m_empty));
  if (!hasLanes) {
    m_lanes->setTimeline(nullptr, nullptr);
    const bool hasFailed = run && run->report;
    m_empty->setText(
        hasFailed
            ? QStringLiteral("The run failed before a rank recorded a timeline.")
            : QStringLiteral(
                  "After a run, this shows each rank's timeline: compute, collectives, and waiting for other ranks."));
    return;
  }
  m_lanes->setTimeline(std::shared_ptr<const pipeline::Timeline>(run->report, &run->report->timeline), run->plan);
  m_lanes->setFocusNode(m_selection.focus().node);
  m_legend->setTimeline(&run->report->timeline);
  m_waited->setText(summary(*run));
  showOperators(*run);
}

/// Forward and backward, on the slowest rank of each operator.
void LanesPage::showOperators(const RunState& run) {
  const auto text = [](double seconds) { return toQ(solve::timeText(Femtoseconds::ofSeconds(seconds))); };
  const graph::Graph& graph = *run.plan->graph;
  auto operators = run.report->timeline.operators(*run.plan);
  operators.resize(std::min(operators.size(), kMostOperators));
  const auto costs = plan::costByNode(*run.plan);
  const QSignalBlocker blocker(m_operators);
  m_operators->setRowCount(static_cast<int>(operators.size()));
  for (int row = 0; row < m_operators->rowCount(); ++row) {
    const auto& [node, nanoseconds] = operators[static_cast<std::size_t>(row)];
    const QString cells[] = {
        nodeName(graph, node), nodeKindText(graph, node), toQ(graph.scope(graph.node(node).scope).path),
        text(static_cast<double>(nanoseconds) / 1e9), text(static_cast<double>(costs[node.index()].computeFs) / 1e15)};
    for (int column = 0; column < 5; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      item->setData(kTargetRole, QVariant::fromValue(Target(node)));
      if (column > 2) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      m_operators->setItem(row, column, item);
    }
  }
}

void LanesPage::showChosen() {
  const auto& chosen = m_lanes->chosen();
  m_chosen->setText(
      chosen ? m_lanes->textOf(*chosen).replace(QLatin1Char('\n'), QStringLiteral("  ·  "))
             : QStringLiteral("Point at a stretch, or move with the arrow keys. A click selects its node in the graph, "
                              "a double click shows it."));
}

void LanesPage::askForFile() {
  const QString path =
      QFileDialog::getSaveFileName(this, QStringLiteral("Export the timeline"), QStringLiteral("run.trace.json"),
                                   QStringLiteral("Chrome trace (*.json)"));
  if (!path.isEmpty()) saveTrace(path);
}

void LanesPage::saveTrace(const QString& file) {
  const RunState* run = m_runs.state();
  if (!run || !run->report || run->report->timeline.isEmpty()) return;
  m_files.save(file, [report = run->report, plan = run->plan] {
    return QByteArray::fromStdString(pipeline::toChromeTrace(report->timeline, *plan));
  });
}

}  // namespace cleave::views
