#pragma once
/// Connects a table with the focus: choosing a row moves the focus, and a moved focus selects its row.
#include "views/session/selection.h"
#include "views/widgets/panel_parts.h"
#include "views/widgets/tables.h"

namespace cleave::views {

/// The timer that shows the focused node's row. Start it after any change that may add the row.
RefreshTimer& followFocusedRow(TablePanel& table, Selection& selection);

}  // namespace cleave::views
