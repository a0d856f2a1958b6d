#include "views/panels/layers_panel.h"

#include "views/base/text.h"
#include "views/panels/change_marks.h"
#include "views/panels/focused_row.h"
#include "views/panels/layers_model.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

LayersPanel::LayersPanel(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
                         QWidget* parent)
    : LayersPanel(new LayersModel(nullptr), opened, plans, jobs, selection, parent) {}

LayersPanel::LayersPanel(LayersModel* model, const OpenedModel& opened, const Plans& plans, const Jobs& jobs,
                         Selection& selection, QWidget* parent)
    : TablePanel(new ChangeMarks(opened, plans, model, nullptr), tr("Filter layers"),
                 tr("The plan's layers appear here once the model is solved: which are split on columns, rows or the "
                    "vocabulary, and what a rank holds."),
                 parent),
      m_plans(plans),
      m_model(model) {
  proxy()->sourceModel()->setParent(this);
  model->setParent(this);
  const std::pair<int, int> widths[] = {{LayersModel::Name, 235},          {LayersModel::Kind, 78},
                                        {LayersModel::StrategyColumn, 80}, {LayersModel::Gather, 56},
                                        {LayersModel::InputParallel, 56},  {LayersModel::SequenceParallelColumn, 32},
                                        {LayersModel::Weight, 74},         {LayersModel::Local, 80}};
  for (const auto& [column, width] : widths) table()->setColumnWidth(column, width);
  connect(&jobs, &Jobs::activityChanged, this, [this, &jobs] {
    if (jobs.activity() == Activity::Solving)
      setEmptyText(tr("The search is under way: the plan's layers appear here when it ends."));
  });
  connect(&plans, &Plans::planChanged, this, &LayersPanel::showPlan);
  followFocusedRow(*this, selection).follow(plans, {&Plans::planChanged});
}

void LayersPanel::showPlan() {
  const auto& solved = m_plans.solved();
  if (solved && solved->result.outcome == solve::Outcome::NoSolution)
    setEmptyText(
        tr("%1, so there is no plan: the conflict card says why.").arg(toQ(solve::noSolutionText(solved->result))));
  else if (solved && solved->result.outcome == solve::Outcome::Stopped)
    setEmptyText(tr("The search was stopped before it found a solution: there is no plan."));
  else if (m_plans.plan() && m_plans.plan()->layers.empty())
    setEmptyText(tr("No parameter of this model is a layer's weight, so the plan has no layers."));
  m_model->setPlan(m_plans.plan());
  // Shapes are read to their last digit; the sentences at the end have the room that is left.
  for (const int column : {LayersModel::StrategyColumn, LayersModel::Weight, LayersModel::Local})
    table()->resizeColumnToContents(column);
}

}  // namespace cleave::views
