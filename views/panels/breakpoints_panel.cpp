#include "views/panels/breakpoints_panel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "views/base/text.h"
#include "views/panels/breakpoints_model.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

BreakpointsPanel::BreakpointsPanel(const OpenedModel& opened, Debugger& debugger, Selection& selection,
                                   Notices& notices, QWidget* parent)
    : QWidget(parent), m_opened(opened), m_debugger(debugger), m_notices(notices), m_input(new QLineEdit) {
  auto* table =
      new TablePanel(new BreakpointsModel(opened, debugger, this), QStringLiteral("Filter breakpoints"),
                     QStringLiteral("No breakpoints yet. Select a node and press F9, or type a condition below."));
  table->table()->horizontalHeader()->hide();
  m_input->setPlaceholderText(
      QStringLiteral("conflict in:model.layers.0   ·   backtrack>8   ·   op:mm placement:S(1)   ·   linear_4"));
  m_input->setAccessibleName(QStringLiteral("New breakpoint"));
  auto* add = new QPushButton(QStringLiteral("Add"));
  auto* remove = new QPushButton(QStringLiteral("Remove"));
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(4, 4, 4, 4);
  bar->addWidget(m_input, 1);
  bar->addWidget(add);
  bar->addWidget(remove);
  makeColumn(this, {table}, table)->addLayout(bar);
  connect(add, &QPushButton::clicked, this, &BreakpointsPanel::add);
  connect(m_input, &QLineEdit::returnPressed, this, &BreakpointsPanel::add);
  connect(remove, &QPushButton::clicked, this, [this, table] {
    m_debugger.removeBreakpoint(table->proxy()->mapToSource(table->table()->currentIndex()).row());
  });
  connect(table, &TablePanel::targetChosen, &selection, &Selection::follow);
}

void BreakpointsPanel::add() {
  if (!m_opened.graph()) return;
  const auto breakpoint = parseBreakpoint(m_input->text(), *m_opened.graph());
  if (!breakpoint) return void(m_notices.say(toQ(breakpoint.error().message), Severity::Failure));
  m_debugger.addBreakpoint(*breakpoint);
  m_notices.say({}, Severity::Info);  // clears the previous error
  m_input->clear();
}

}  // namespace cleave::views
