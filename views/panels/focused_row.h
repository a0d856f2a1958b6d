#pragma once
/// How a table and the focus follow each other: choosing a row moves the focus, a moved focus selects its row.
#include "views/session/selection.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

/// The timer that shows the row of the focused node, for what else may bring that row.
RefreshTimer& followFocusedRow(TablePanel& table, Selection& selection);

}  // namespace cleave::views
