#include "views/panels/modules_panel.h"

#include <QHeaderView>
#include <QLineEdit>
#include <QTreeView>
#include <QVBoxLayout>

#include "views/panels/change_marks.h"
#include "views/panels/followed_splits.h"
#include "views/panels/modules_model.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

ModulesPanel::ModulesPanel(const OpenedModel& opened, const Plans& plans, const Splits& splits, Selection& selection,
                           QWidget* parent)
    : QWidget(parent),
      m_splits(splits),
      m_selection(selection),
      m_model(new ModulesModel(this)),
      m_marks(new ChangeMarks(opened, plans, m_model, this)),
      m_proxy(new WordFilterModel(this)),
      m_tree(new QTreeView),
      m_filter(makeFilterBox(QStringLiteral("Filter modules"))) {
  m_proxy->setRecursiveFilteringEnabled(true);
  m_proxy->setSourceModel(m_marks);
  makeLayout();
  connect(m_filter, &QLineEdit::textChanged, this, [this](const QString& text) {
    m_proxy->setWords(text);
    if (!text.isEmpty()) m_tree->expandAll();
    showFocus();
  });
  connect(&opened, &OpenedModel::changed, this, &ModulesPanel::showModel);
  connect(m_tree->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
    if (!m_isShowing && m_tree->hasFocus() && current.isValid()) follow(current);
  });
  connect(m_tree, &QTreeView::clicked, this, &ModulesPanel::follow);
  followSplits(*this, splits, [this](std::span<const NodeId> nodes) { m_model->reportChanges(nodes); });
  auto* focus = new RefreshTimer(
      this, [this] { showFocus(); }, RefreshTimer::kTablesMs);
  focus->follow(selection, {&Selection::focusChanged});
}

void ModulesPanel::makeLayout() {
  m_tree->setModel(m_proxy);
  m_tree->setItemDelegate(new ChipDelegate(m_tree));
  m_tree->setUniformRowHeights(true);
  m_tree->setAccessibleName(QStringLiteral("Modules"));
  m_tree->setIndentation(10);
  QHeaderView& header = *m_tree->header();
  header.setStretchLastSection(false);
  header.setSectionResizeMode(ModulesModel::Name, QHeaderView::Stretch);
  header.setSectionResizeMode(ModulesModel::Split, QHeaderView::Fixed);
  header.setSectionResizeMode(ModulesModel::Operators, QHeaderView::Fixed);
  header.resizeSection(ModulesModel::Split, 58);
  header.resizeSection(ModulesModel::Operators, 42);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 0);
  layout->setSpacing(4);
  auto* bar = new QVBoxLayout;
  bar->setContentsMargins(4, 0, 4, 0);
  bar->addWidget(m_filter);
  layout->addLayout(bar);
  layout->addWidget(m_tree, 1);
}

void ModulesPanel::showModel() {
  m_model->setSplits(m_splits.counts());
  m_tree->expandToDepth(1);
}

/// No row is marked if the filter hides the focused one.
void ModulesPanel::showFocus() {
  const QModelIndex module = m_model->indexOf(m_selection.focus().scope);
  const QModelIndex index = m_proxy->mapFromSource(m_marks->mapFromSource(module));
  m_isShowing = true;
  m_tree->setCurrentIndex(index);
  if (index.isValid())
    m_tree->scrollTo(index);
  else
    m_tree->clearSelection();
  m_isShowing = false;
}

void ModulesPanel::follow(const QModelIndex& row) {
  if (const auto target = targetOf(row)) m_selection.follow(*target);
}

}  // namespace cleave::views
