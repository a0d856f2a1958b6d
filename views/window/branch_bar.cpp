#include "views/window/branch_bar.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

#include "views/widgets/panel_parts.h"

namespace cleave::views {

namespace {
constexpr int kChangeWidth = 260;
}

BranchBar::BranchBar(Plans& plans, QWidget* parent) : QWidget(parent), m_plans(plans), m_change(new ElidedLabel) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(4, 2, 6, 2);
  layout->setSpacing(2);
  auto* group = new QButtonGroup(this);
  for (int i = 0; i < 2; ++i) {
    m_buttons[i] = new QToolButton;
    m_buttons[i]->setText(i == 0 ? QStringLiteral("A") : QStringLiteral("B"));
    m_buttons[i]->setObjectName(m_buttons[i]->text());
    m_buttons[i]->setCheckable(true);
    m_buttons[i]->setFocusPolicy(Qt::TabFocus);
    group->addButton(m_buttons[i]);
    layout->addWidget(m_buttons[i]);
    connect(m_buttons[i], &QToolButton::clicked, this, [this, i] { m_plans.showBranch(static_cast<std::size_t>(i)); });
  }
  m_change->setMaximumWidth(kChangeWidth);
  m_change->setTextFormat(Qt::PlainText);
  m_change->setContentsMargins(4, 0, 4, 0);
  layout->addWidget(m_change);
  const auto add = [&](const QString& text, const QString& tip, void (Plans::*run)()) {
    auto* button = new QToolButton;
    button->setText(text);
    button->setToolTip(tip);
    button->setFocusPolicy(Qt::TabFocus);
    connect(button, &QToolButton::clicked, &m_plans, run);
    layout->addWidget(button);
  };
  add(QStringLiteral("Keep B"), QStringLiteral("Use B as the only plan and discard A"), &Plans::keepBranch);
  add(QStringLiteral("Drop B"), QStringLiteral("Return to A and its settings and discard B"), &Plans::dropBranch);
  connect(&plans, &Plans::branchesChanged, this, &BranchBar::refresh);
  refresh();
}

void BranchBar::refresh() {
  const auto& branches = m_plans.branches();
  setVisible(branches.size() > 1);
  if (branches.size() < 2) return;
  for (std::size_t i = 0; i < 2; ++i) {
    const Branch& branch = branches[i];
    m_buttons[i]->setChecked(i == m_plans.shownBranch());
    const QString state = branch.plan ? QString() : QStringLiteral(" (no plan)");
    m_buttons[i]->setToolTip(QStringLiteral("%1: %2%3 (Ctrl+B switches)").arg(branch.name, branch.label, state));
    m_buttons[i]->setAccessibleName(QStringLiteral("Branch %1: %2").arg(branch.name, branch.label));
  }
  m_change->setText(QStringLiteral("B: %1").arg(branches[1].label));
}

}  // namespace cleave::views
