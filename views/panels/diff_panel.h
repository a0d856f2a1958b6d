#pragma once
/// Two solves side by side: plan A before a change, and plan B after it. Figures with their change, the layers and
/// values that changed, and two actions: keep B, or go back to A.
#include <QWidget>

#include "views/base/rich_text.h"
#include "views/session/plans.h"
#include "views/session/selection.h"

class QBoxLayout;
class QLabel;
class QPushButton;

namespace cleave::views {

class DiffModel;
class EmptyState;
class LinkText;
class TablePanel;

/// The figures of a diff as a table: A, B, change. An arrow, a word and a colour show better and worse.
QString diffFigures(const plan::PlanDiff& diff, const TextColors& colors);

class DiffPanel : public QWidget {
  Q_OBJECT
 public:
  DiffPanel(const OpenedModel& opened, Settings& settings, Plans& plans, const Jobs& jobs, Selection& selection,
            QWidget* parent = nullptr);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QLayout* makeHead();
  void makeBody();
  void refresh();
  void refreshHead();
  void refreshDiff();
  QString emptyText() const;
  const OpenedModel& m_opened;
  Settings& m_settings;
  Plans& m_plans;
  const Jobs& m_jobs;
  EmptyState* m_empty;
  QWidget* m_full;
  QLabel* m_labels;  ///< full labels of A and B
  QPushButton* m_showA;
  QPushButton* m_showB;
  QPushButton* m_keep;
  QPushButton* m_back;
  QBoxLayout* m_body;
  LinkText* m_figures;
  DiffModel* m_model;
  TablePanel* m_table;
  std::shared_ptr<const plan::PlanDiff> m_shown;
};

}  // namespace cleave::views
