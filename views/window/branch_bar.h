#pragma once
/// The switch between the plans before and after a change: A | B, the change, keep, drop. Hidden while there is only
/// one plan.
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
