#include "views/widgets/tables.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>

#include "views/widgets/chip_delegate.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

WordFilterModel::WordFilterModel(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(kSortRole);
  setSortCaseSensitivity(Qt::CaseInsensitive);
}

void WordFilterModel::setWords(const QString& text) {
  m_words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  invalidateFilter();
}

bool WordFilterModel::filterAcceptsRow(int row, const QModelIndex& parent) const {
  return std::all_of(m_words.begin(), m_words.end(), [&](const QString& word) {
    for (int column = 0; column < sourceModel()->columnCount(parent); ++column) {
      const QModelIndex index = sourceModel()->index(row, column, parent);
      if (index.data(Qt::DisplayRole).toString().contains(word, Qt::CaseInsensitive)) return true;
      if (column == 0 && index.data(Qt::ToolTipRole).toString().contains(word, Qt::CaseInsensitive)) return true;
    }
    return false;
  });
}

QLabel* makeEmptyLabel(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setAlignment(Qt::AlignCenter);
  label->setWordWrap(true);
  label->setMargin(16);
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setTextFormat(Qt::PlainText);
  return label;
}

void styleTable(QTableView& table) {
  table.setSelectionBehavior(QAbstractItemView::SelectRows);
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setShowGrid(false);
  table.setWordWrap(false);
  table.setTabKeyNavigation(false);
  table.verticalHeader()->hide();
  table.verticalHeader()->setDefaultSectionSize(table.fontMetrics().height() + 6);
  table.horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
}

QLineEdit* makeFilterBox(const QString& hint) {
  auto* box = new QLineEdit;
  box->setPlaceholderText(hint);
  box->setAccessibleName(hint);
  box->setClearButtonEnabled(true);
  return box;
}

TablePanel::TablePanel(QAbstractItemModel* model, const QString& filterHint, const QString& emptyText, QWidget* parent)
    : QWidget(parent),
      m_filter(makeFilterBox(filterHint)),
      m_table(new QTableView),
      m_empty(makeEmptyLabel(emptyText)),
      m_proxy(new WordFilterModel(this)) {
  m_proxy->setSourceModel(model);
  m_table->setModel(m_proxy);
  m_table->setItemDelegate(new ChipDelegate(m_table));
  styleTable(*m_table);
  m_table->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_table->setAlternatingRowColors(true);
  m_table->setTextElideMode(Qt::ElideRight);
  m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  m_table->horizontalHeader()->setHighlightSections(false);
  m_table->horizontalHeader()->setStretchLastSection(true);
  m_table->setSortingEnabled(true);
  m_table->sortByColumn(-1, Qt::AscendingOrder);
  m_table->installEventFilter(this);

  QVBoxLayout* layout = makeColumn(this, {});
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(4, 4, 4, 4);
  bar->addWidget(m_filter);
  layout->addLayout(bar);
  layout->addWidget(m_table, 1);
  layout->addWidget(m_empty, 1);

  connect(m_filter, &QLineEdit::textChanged, this, &TablePanel::filter);
  connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
    if (m_isShowing || !current.isValid()) return;
    m_target = targetOf(current.siblingAtColumn(0));
    if (m_target) emit targetChosen(*m_target);
  });
  connect(model, &QAbstractItemModel::modelReset, this, &TablePanel::updateRows);
  connect(model, &QAbstractItemModel::rowsInserted, this, &TablePanel::updateRows);
  connect(model, &QAbstractItemModel::rowsRemoved, this, &TablePanel::updateRows);
  updateRows();
}

void TablePanel::setColumnWidths(std::initializer_list<std::pair<int, int>> widths) {
  for (const auto& [column, width] : widths) m_table->setColumnWidth(column, width);
}

void TablePanel::setEmptyText(const QString& text) { m_empty->setText(text); }

void TablePanel::updateRows() {
  m_rows.clear();
  const bool isEmpty = m_proxy->sourceModel()->rowCount() == 0;
  m_empty->setVisible(isEmpty);
  m_table->setVisible(!isEmpty);
  m_filter->setVisible(!isEmpty);
}

/// Removed rows move the current index to a neighbour that the user did not choose.
void TablePanel::filter(const QString& words) {
  m_isShowing = true;
  m_proxy->setWords(words);
  m_isShowing = false;
  showTarget(m_target);
}

void TablePanel::showTarget(const std::optional<Target>& target) {
  m_target = target;
  if (target && target == targetOf(m_table->currentIndex().siblingAtColumn(0))) return;
  m_isShowing = true;
  const int row = target ? rowOf(*target) : -1;
  const QModelIndex found = m_proxy->mapFromSource(m_proxy->sourceModel()->index(row, 0));
  if (found.isValid()) {
    m_table->setCurrentIndex(found);
    m_table->scrollTo(found);
  } else {
    m_table->clearSelection();
    m_table->setCurrentIndex({});
  }
  m_isShowing = false;
}

/// The target's row in the source model, or -1. Rows are indexed once, because every step looks one up.
int TablePanel::rowOf(const Target& target) {
  const QAbstractItemModel& source = *m_proxy->sourceModel();
  if (m_rows.isEmpty())
    for (int row = 0; row < source.rowCount(); ++row)
      if (const auto stands = targetOf(source.index(row, 0))) m_rows.insert(*stands, row);
  return m_rows.value(target, -1);
}

bool TablePanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) {
    copySelection();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

void TablePanel::copySelection() {
  QStringList lines;
  for (const QModelIndex& row : m_table->selectionModel()->selectedRows()) {
    QStringList cells;
    for (int column = 0; column < m_proxy->columnCount(); ++column) {
      const QModelIndex cell = row.siblingAtColumn(column);
      const QVariant text = cell.data(Qt::DisplayRole);
      cells << (text.isValid() ? text.toString() : cell.data(Qt::AccessibleTextRole).toString());
    }
    lines << cells.join(QLatin1Char('\t'));
  }
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

}  // namespace cleave::views
