#include "views/panels/diff_panel.h"

#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "plan/shares.h"
#include "plan/text/shares_text.h"
#include "views/base/text.h"
#include "views/panels/diff_model.h"
#include "views/panels/figures.h"
#include "views/widgets/flow_layout.h"
#include "views/widgets/link_text.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

namespace {
constexpr int kWideEnough = 760;  ///< pixels from which figures and table are side by side
constexpr int kFiguresWidth = 360, kNameWidth = 84;
constexpr int kLetterWidth = 7;  ///< width of a one-letter button, in letters

enum class Better { Lower, Higher, Neither };

/// Breaks lines only between a count and its bytes or its total, so that a narrow panel has room for all columns.
QString breakable(const QString& text) {
  return text.toHtmlEscaped()
      .replace(QLatin1Char(' '), QStringLiteral("&nbsp;"))
      .replace(QStringLiteral("·&nbsp;"), QStringLiteral("· "))
      .replace(QStringLiteral("&nbsp;of&nbsp;"), QStringLiteral("&nbsp;of "));
}

template <class Amount>
QString verdict(Amount change, Better better, const QString& text, const TextColors& colors) {
  if (change == 0) return quiet(QStringLiteral("same"), colors);
  const QString arrow = change > 0 ? QStringLiteral("▲") : QStringLiteral("▼");
  if (better == Better::Neither) return QStringLiteral("%1&nbsp;%2").arg(breakable(text), arrow);
  const bool isBetter = (change < 0) == (better == Better::Lower);
  return QStringLiteral("<span style=\"color:%1\">%2&nbsp;%3</span>")
      .arg(isBetter ? colors.good : colors.conflict, breakable(text), arrow);
}

/// As wide as its longest word, at any width of the numbers.
QString wordCell(const QString& name) {
  return QStringLiteral("<td width=\"%1\">%2&nbsp;</td>").arg(kNameWidth).arg(name);
}

QString figureCell(const QString& html) { return QStringLiteral("<td align=\"right\">&nbsp;%1</td>").arg(html); }

QString figureRow(const QString& name, const QString& before, const QString& after, const QString& change) {
  return row({wordCell(name), figureCell(breakable(before)), figureCell(breakable(after)), figureCell(change)});
}

QString bytesRow(const QString& name, const plan::Figure& figure, const TextColors& colors) {
  return figureRow(name, bytesText(figure.before), bytesText(figure.after),
                   verdict(figure.change(), Better::Lower, bytesChange(figure.change()), colors));
}

QString trafficText(const plan::Traffic& traffic) {
  if (traffic.count == 0) return QStringLiteral("–");
  return QStringLiteral("%1 · %2").arg(countText(static_cast<std::uint64_t>(traffic.count)), bytesText(traffic.bytes));
}
}  // namespace

QString diffFigures(const plan::PlanDiff& diff, const TextColors& colors) {
  QStringList rows;
  rows << row({cell(QString()), numberCell(quiet(QStringLiteral("A"), colors)),
               numberCell(quiet(QStringLiteral("B"), colors)), numberCell(quiet(QStringLiteral("change"), colors))});
  if (diff.ranksBefore != diff.ranksAfter)
    rows << figureRow(QStringLiteral("ranks"), QString::number(diff.ranksBefore), QString::number(diff.ranksAfter),
                      verdict(diff.ranksAfter - diff.ranksBefore, Better::Neither,
                              countChange(diff.ranksAfter - diff.ranksBefore), colors));
  rows << figureRow(QStringLiteral("layers split"),
                    QStringLiteral("%1 of %2").arg(diff.splitLayers.before).arg(diff.layerCount.before),
                    QStringLiteral("%1 of %2").arg(diff.splitLayers.after).arg(diff.layerCount.after),
                    verdict(diff.splitLayers.change(), Better::Higher, countChange(diff.splitLayers.change()), colors));
  const auto share = [&](const QString& name, const std::pair<double, double>& share) {
    // The change is the difference of the rounded figures shown.
    const double shown = plan::shownPercent(share.second) - plan::shownPercent(share.first);
    const QString points =
        QStringLiteral("%1%2 points")
            .arg(shown < 0 ? QStringLiteral("−") : QStringLiteral("+"), QString::number(std::abs(shown), 'f', 1));
    rows << figureRow(name, toQ(plan::percentText(share.first)), toQ(plan::percentText(share.second)),
                      verdict(shown, Better::Higher, points, colors));
  };
  share(QStringLiteral("FLOPs split"), diff.splitFlops);
  share(QStringLiteral("weights split"), diff.splitWeights);
  rows << figureRow(QStringLiteral("time per step"), timeText(diff.femtoseconds.before),
                    timeText(diff.femtoseconds.after),
                    verdict(diff.femtoseconds.change(), Better::Lower, timeChange(diff.femtoseconds.change()), colors));
  rows << bytesRow(QStringLiteral("bytes per rank"), diff.rankBytes, colors);
  const auto parts = solve::memoryParts({});
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (diff.memoryParts[i].before != 0 || diff.memoryParts[i].after != 0)
      rows << bytesRow(QStringLiteral("– %1").arg(toQ(parts[i].name)), diff.memoryParts[i], colors);
  for (const auto& [kind, traffic] : diff.collectives) {
    const auto& [before, after] = traffic;
    const std::int64_t bytes = after.bytes - before.bytes, count = after.count - before.count;
    const QString change =
        count == 0 ? bytesChange(bytes) : QStringLiteral("%1 · %2").arg(countChange(count), bytesChange(bytes));
    rows << figureRow(toQ(rules::toText(kind)).replace(QLatin1Char('_'), QLatin1Char('-')), trafficText(before),
                      trafficText(after), verdict(bytes != 0 ? bytes : count, Better::Lower, change, colors));
  }
  return table(rows);
}

/// The reason why there is no diff. The conflict card covers only the branch that is shown.
QString whyNothing(const Branch& branch, bool isShown) {
  if (!branch.solved || branch.solved->result.outcome != solve::Outcome::NoSolution)
    return QStringLiteral("The search of %1 was stopped before it found a plan.").arg(branch.name);
  const QString text = QStringLiteral("%1 for %2, so there is no diff")
                           .arg(toQ(solve::noSolutionText(branch.solved->result)), branch.name);
  return text + (isShown ? QStringLiteral(". The conflict card shows the reason.")
                         : QStringLiteral(". Show %1 to see the reason on the conflict card.").arg(branch.name));
}

DiffPanel::DiffPanel(const OpenedModel& opened, Settings& settings, Plans& plans, const Jobs& jobs,
                     Selection& selection, QWidget* parent)
    : QWidget(parent),
      m_opened(opened),
      m_settings(settings),
      m_plans(plans),
      m_jobs(jobs),
      m_empty(new EmptyState),
      m_full(new QWidget),
      m_labels(new QLabel),
      m_showA(new QPushButton(QStringLiteral("A"))),
      m_showB(new QPushButton(QStringLiteral("B"))),
      m_keep(new QPushButton(QStringLiteral("Keep B"))),
      m_back(new QPushButton(QStringLiteral("Drop B"))),
      m_body(new QBoxLayout(QBoxLayout::TopToBottom)),
      m_figures(new LinkText),
      m_model(new DiffModel(this)),
      m_table(new TablePanel(m_model, QStringLiteral("Filter changes"),
                             QStringLiteral("Both plans place all layers and values alike."))) {
  m_labels->setWordWrap(true);
  m_labels->setMinimumWidth(1);
  m_labels->setTextFormat(Qt::RichText);
  m_labels->setContentsMargins(8, 0, 8, 2);
  makeBody();
  QVBoxLayout* full = makeColumn(m_full, {});
  full->addLayout(makeHead());
  full->addWidget(m_labels);
  full->addLayout(m_body, 1);
  makeColumn(this, {m_empty, m_full});

  connect(m_empty, &EmptyState::acted, &settings, &Settings::solve);
  connect(m_figures, &LinkText::followed, &selection, &Selection::follow);
  connect(m_table, &TablePanel::targetChosen, &selection, &Selection::follow);
  auto* timer = new RefreshTimer(this, [this] { refresh(); });
  timer->followPalette()
      .follow(plans, {&Plans::branchesChanged, &Plans::planChanged})
      .follow(opened, {&OpenedModel::changed});
  timer->follow(settings, {&Settings::changed, &Settings::demandsChanged}).follow(jobs, {&Jobs::activityChanged});
  refresh();
}

/// The buttons that show, keep and drop a plan.
QLayout* DiffPanel::makeHead() {
  for (QPushButton* button : {m_showA, m_showB}) {
    button->setCheckable(true);
    button->setAutoExclusive(true);
    button->setMaximumWidth(fontMetrics().averageCharWidth() * kLetterWidth);
  }
  m_keep->setToolTip(QStringLiteral("Use B as the plan and discard A"));
  m_back->setToolTip(QStringLiteral("Discard B and its change, and show A again"));
  auto* head = new FlowLayout;
  for (QPushButton* button : {m_showA, m_showB, m_keep, m_back}) head->addWidget(button);
  connect(m_showA, &QPushButton::clicked, this, [this] { m_plans.showBranch(0); });
  connect(m_showB, &QPushButton::clicked, this, [this] { m_plans.showBranch(1); });
  connect(m_keep, &QPushButton::clicked, &m_plans, &Plans::keepBranch);
  connect(m_back, &QPushButton::clicked, &m_plans, &Plans::dropBranch);
  return head;
}

void DiffPanel::makeBody() {
  m_figures->setAccessibleName(QStringLiteral("Figures of both plans"));
  m_figures->setMaximumWidth(QWIDGETSIZE_MAX);
  m_table->setColumnWidths(
      {{DiffModel::Name, 120}, {DiffModel::Count, 58}, {DiffModel::Before, 66}, {DiffModel::After, 66}});
  m_body->setSpacing(0);
  m_body->addWidget(m_figures, 2);
  m_body->addWidget(m_table, 3);
}

void DiffPanel::refresh() {
  const bool isFull = m_plans.branches().size() == 2;
  m_full->setVisible(isFull);
  m_empty->setVisible(!isFull);
  if (!isFull) {
    m_shown.reset();
    const bool canSolve = m_opened.model() && m_jobs.activity() == Activity::Idle && m_plans.isOutdated();
    return m_empty->say(emptyText(), canSolve ? QStringLiteral("Solve with the changes") : QString());
  }
  refreshHead();
  refreshDiff();
}

QString DiffPanel::emptyText() const {
  const QString promise = QStringLiteral("This panel compares two plans: A before a change, B after it.");
  if (!m_opened.model()) return QStringLiteral("%1 Open a model to begin.").arg(promise);
  return QStringLiteral("%1 Pin or forbid a strategy, lift a demand, or change a setting, and solve again.")
      .arg(promise);
}

void DiffPanel::refreshHead() {
  const auto& branches = m_plans.branches();
  QStringList lines;
  const auto name = [&](QPushButton* button, const Branch& branch) {
    button->setToolTip(QStringLiteral("Show %1 in every view: %2").arg(branch.name, branch.label));
    button->setAccessibleName(button->toolTip());
    lines << QStringLiteral("<b>%1</b>&nbsp; %2").arg(branch.name, branch.label.toHtmlEscaped());
  };
  name(m_showA, branches[0]);
  name(m_showB, branches[1]);
  m_labels->setText(lines.join(QStringLiteral("<br>")));
  (m_plans.shownBranch() == 0 ? m_showA : m_showB)->setChecked(true);
  const bool isIdle = m_jobs.activity() == Activity::Idle;
  for (QPushButton* button : {m_showA, m_showB, m_keep, m_back}) button->setEnabled(isIdle);
}

void DiffPanel::refreshDiff() {
  const auto& diff = m_plans.diff();
  const TextColors colors = TextColors::of(palette());
  if (!diff) {
    m_shown.reset();
    m_model->setRows({});
    m_table->hide();
    QString text;
    const auto& branches = m_plans.branches();
    for (std::size_t i = 0; i < branches.size(); ++i)
      if (!branches[i].plan) text = whyNothing(branches[i], i == m_plans.shownBranch());
    if (text.isEmpty()) text = m_plans.diffFailure();
    if (text.isEmpty()) text = QStringLiteral("Comparing …");
    return m_figures->showHtml(QStringLiteral("<p>%1</p>").arg(text.toHtmlEscaped()), false);
  }
  m_table->show();
  m_figures->showHtml(diffFigures(*diff, colors), true);
  if (diff == m_shown) return;
  m_shown = diff;
  m_model->setRows(diffRows(*diff, *m_opened.graph()));
}

void DiffPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool isWide = width() >= kWideEnough;
  m_body->setDirection(isWide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  m_figures->setMaximumWidth(isWide ? kFiguresWidth : QWIDGETSIZE_MAX);
}

}  // namespace cleave::views
