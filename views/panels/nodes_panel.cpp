#include "views/panels/nodes_panel.h"

#include "views/panels/focused_row.h"
#include "views/panels/followed_splits.h"
#include "views/panels/nodes_model.h"
#include "views/widgets/panel_parts.h"

namespace cleave::views {

NodesPanel::NodesPanel(const OpenedModel& opened, const Plans& plans, const Splits& splits, Selection& selection,
                       QWidget* parent)
    : MarkedTable(opened, plans, QStringLiteral("Filter operators"),
                  QStringLiteral("Every operator of the graph as a row. Open a model to fill it."), parent) {
  setColumnWidths({{NodesModel::Name, 170},
                   {NodesModel::Operator, 130},
                   {NodesModel::Module, 260},
                   {NodesModel::Shape, 150},
                   {NodesModel::PlacementColumn, 80}});
  connect(&opened, &OpenedModel::changed, this, [this, &splits] { model().setSplits(splits.counts()); });
  followSplits(*this, splits, [this](std::span<const NodeId> nodes) { model().reportChanges(nodes); });
  followFocusedRow(*this, selection);
}

}  // namespace cleave::views
