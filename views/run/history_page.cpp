#include "views/run/history_page.h"

#include <QBoxLayout>
#include <QEvent>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTableView>
#include <algorithm>

#include "views/base/text.h"
#include "views/base/theme.h"
#include "views/run/run_comparison.h"
#include "views/widgets/link_text.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

HistoryModel::HistoryModel(const RunHistory& history, QObject* parent)
    : QAbstractTableModel(parent), m_history(history) {
  connect(&history, &RunHistory::changed, this, [this] {
    beginResetModel();
    endResetModel();
  });
}

int HistoryModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_history.runs().size());
}

int HistoryModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant HistoryModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const KeptRun& run = *m_history.runs()[static_cast<std::size_t>(index.row())];
  const bool isNumber = index.column() == Loss || index.column() == Step;
  if (role == Qt::TextAlignmentRole) return int((isNumber ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && index.column() == Model) return toQ(run.run.plan.model);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Ended: return endedText(run.at);
    case Model: return modelText(run.run);
    case Plan: return planText(run.run);
    case Verdict: return verdictText(run.run);
    case Loss: return lossText(run.run);
    case Step: return stepTimeText(run.run);
    default: return {};
  }
}

QVariant HistoryModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  const QString names[ColumnCount] = {QStringLiteral("Ended"),   QStringLiteral("Model"), QStringLiteral("Plan"),
                                      QStringLiteral("Verdict"), QStringLiteral("Loss"),  QStringLiteral("Step")};
  return section < ColumnCount ? names[section] : QVariant();
}

HistoryPage::HistoryPage(RunHistory& history, QWidget* parent)
    : QWidget(parent),
      m_history(history),
      m_model(new HistoryModel(history, this)),
      m_table(new QTableView),
      m_empty(makeEmptyLabel(QStringLiteral("Runs that have ended are listed here. Open one again, or compare two."))),
      m_trouble(new ElidedLabel),
      m_forget(new QPushButton(QStringLiteral("Forget"))),
      m_losses(new LineChart),
      m_text(new LinkText),
      m_details(new QWidget) {
  m_table->setModel(m_model);
  styleTable(*m_table);
  m_table->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  m_table->horizontalHeader()->setSectionResizeMode(HistoryModel::Plan, QHeaderView::Stretch);
  m_table->setAccessibleName(QStringLiteral("Saved runs"));
  m_trouble->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_forget->setToolTip(QStringLiteral("Delete the selected runs and their files (Delete)"));
  auto* below = new QHBoxLayout;
  below->addWidget(m_trouble, 1);
  below->addStretch();
  below->addWidget(m_forget);
  auto* list = new QWidget;
  auto* rows = new QVBoxLayout(list);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->addWidget(m_empty, 1);
  rows->addWidget(m_table, 1);
  rows->addLayout(below);
  m_beside = new QBoxLayout(QBoxLayout::LeftToRight, m_details);
  m_beside->setContentsMargins(0, 0, 0, 0);
  m_beside->addWidget(m_text, 1);
  m_beside->addWidget(m_losses, 1);
  m_text->setEmptyText(QStringLiteral("Select one run to see it, or two to compare them (Ctrl+click)."));
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(list);
  split->addWidget(m_details);
  split->setStretchFactor(0, 2);
  split->setStretchFactor(1, 3);
  split->setChildrenCollapsible(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 6, 8, 6);
  layout->addWidget(split);
  connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &HistoryPage::showChosen);
  connect(m_forget, &QPushButton::clicked, this, &HistoryPage::forgetChosen);
  m_table->installEventFilter(this);
  connect(&history, &RunHistory::changed, this, &HistoryPage::refresh);
  refresh();
}

/// Losses are next to the text if there is room for both, else below it.
void HistoryPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  constexpr int kBothWide = 760;
  m_beside->setDirection(width() >= kBothWide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

bool HistoryPage::eventFilter(QObject* watched, QEvent* event) {
  const bool isDelete = watched == m_table && event->type() == QEvent::KeyPress &&
                        static_cast<QKeyEvent*>(event)->matches(QKeySequence::Delete);
  if (!isDelete) return QWidget::eventFilter(watched, event);
  forgetChosen();
  return true;
}

void HistoryPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showChosen();
}

void HistoryPage::refresh() {
  const bool hasRuns = !m_history.runs().empty();
  m_empty->setVisible(!hasRuns);
  m_table->setVisible(hasRuns);
  m_details->setVisible(hasRuns);
  m_forget->setVisible(hasRuns);
  m_trouble->setText(m_history.trouble());
  m_trouble->setVisible(!m_history.trouble().isEmpty());
  showChosen();
}

std::vector<std::shared_ptr<const KeptRun>> HistoryPage::chosen() const {
  std::vector<int> rows;
  for (const QModelIndex& index : m_table->selectionModel()->selectedRows()) rows.push_back(index.row());
  std::sort(rows.rbegin(), rows.rend());  // the older one is A
  std::vector<std::shared_ptr<const KeptRun>> runs;
  for (const int row : rows)
    if (row < m_model->rowCount() && runs.size() < 2) runs.push_back(m_history.runs()[static_cast<std::size_t>(row)]);
  return runs;
}

void HistoryPage::showChosen() {
  const auto runs = chosen();
  m_forget->setEnabled(!runs.empty());
  const ChartData losses = lossesOf(runs);
  m_losses->setVisible(!losses.lines.empty());
  m_losses->setData(losses);
  const TextColors colors = TextColors::of(palette());
  const QString html = runs.empty()       ? QString()
                       : runs.size() == 1 ? runHtml(*runs[0], colors)
                                          : comparisonHtml(*runs[0], *runs[1], colors);
  m_text->showHtml(html.isEmpty() ? html : richTextStyle(palette()) + html, false);
}

void HistoryPage::choose(std::initializer_list<int> numbers) {
  m_table->clearSelection();
  for (const int number : numbers)
    m_table->selectionModel()->select(m_model->index(number - 1, 0),
                                      QItemSelectionModel::Select | QItemSelectionModel::Rows);
  m_table->scrollTo(m_model->index(*numbers.begin() - 1, 0));
}

bool HistoryPage::showRun(int number) {
  if (number < 1 || number > m_model->rowCount()) return false;
  choose({number});
  return true;
}

bool HistoryPage::compare(int number, int other) {
  if (std::min(number, other) < 1 || std::max(number, other) > m_model->rowCount() || number == other) return false;
  choose({number, other});
  return true;
}

QString HistoryPage::text() const { return m_text->toPlainText(); }

void HistoryPage::forgetChosen() {
  for (const auto& run : chosen()) {
    const auto at = std::find(m_history.runs().begin(), m_history.runs().end(), run);
    if (at != m_history.runs().end()) m_history.forget(static_cast<std::size_t>(at - m_history.runs().begin()));
  }
}

}  // namespace cleave::views
