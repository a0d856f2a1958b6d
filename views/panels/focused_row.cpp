#include "views/panels/focused_row.h"

namespace cleave::views {

RefreshTimer& followFocusedRow(TablePanel& table, Selection& selection) {
  QObject::connect(&table, &TablePanel::targetChosen, &selection, &Selection::follow);
  auto* timer = new RefreshTimer(
      &table,
      [&table, &selection] {
        const NodeId node = selection.focus().node;
        table.showTarget(node.isValid() ? std::optional<Target>(node) : std::nullopt);
      },
      RefreshTimer::kTablesMs);
  return timer->follow(selection, {&Selection::focusChanged});
}

}  // namespace cleave::views
