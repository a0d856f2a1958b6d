#include "views/panels/layers_panel.h"

#include "views/base/text.h"
#include "views/panels/focused_row.h"
#include "views/panels/layers_model.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

LayersPanel::LayersPanel(const OpenedModel& opened, const Plans& plans, const Jobs& jobs, Selection& selection,
                         QWidget* parent)
    : MarkedTable(
          opened, plans, QStringLiteral("Filter layers"),
          QStringLiteral(
              "Solve the model to list the plan's layers: their split on columns, rows or the vocabulary, and the "
              "shard per rank."),
          parent),
      m_plans(plans) {
  setColumnWidths({{LayersModel::Name, 235},
                   {LayersModel::Kind, 78},
                   {LayersModel::StrategyColumn, 80},
                   {LayersModel::Gather, 56},
                   {LayersModel::InputParallel, 56},
                   {LayersModel::SequenceParallelColumn, 32},
                   {LayersModel::Weight, 74},
                   {LayersModel::Local, 80}});
  connect(&jobs, &Jobs::activityChanged, this, [this, &jobs] {
    if (jobs.activity() == Activity::Solving)
      setEmptyText(QStringLiteral("The search is running. The plan's layers appear here when it ends."));
  });
  connect(&plans, &Plans::planChanged, this, &LayersPanel::showPlan);
  followFocusedRow(*this, selection).follow(plans, {&Plans::planChanged});
}

void LayersPanel::showPlan() {
  const auto& solved = m_plans.solved();
  if (solved && solved->result.outcome == solve::Outcome::NoSolution)
    setEmptyText(QStringLiteral("%1, so there is no plan. The conflict card shows the reason.")
                     .arg(toQ(solve::noSolutionText(solved->result))));
  else if (solved && solved->result.outcome == solve::Outcome::Stopped)
    setEmptyText(QStringLiteral("No plan: the search was stopped before it found one."));
  else if (m_plans.plan() && m_plans.plan()->layers.empty())
    setEmptyText(QStringLiteral("The plan has no layers: no parameter of this model is a layer's weight."));
  model().setPlan(m_plans.plan());
  // Shapes must be readable in full. The sentences in the last column get the remaining room.
  for (const int column : {LayersModel::StrategyColumn, LayersModel::Weight, LayersModel::Local})
    table()->resizeColumnToContents(column);
}

}  // namespace cleave::views
