#pragma once
/// The switch between the plan before a change and the one after it: A | B, what changed, keep, drop. Hidden while
/// there is nothing to compare.
#include <QWidget>

#include "views/session/plans.h"

class QLabel;
class QToolButton;

namespace cleave::views {

class BranchBar : public QWidget {
  Q_OBJECT
 public:
  explicit BranchBar(Plans& plans, QWidget* parent = nullptr);

 private:
  void refresh();
  Plans& m_plans;
  QToolButton* m_buttons[2];
  QLabel* m_change;
};

}  // namespace cleave::views
