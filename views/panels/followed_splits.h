#pragma once
/// Connects a table with the splits. A burst of steps is merged into one update, shortly after the canvas.
#include <QWidget>
#include <functional>
#include <span>

#include "views/session/splits.h"

namespace cleave::views {

/// Calls `report` with the changes since the last call, ascending, without duplicates. Ends with the panel. Pending
/// changes are dropped when another model is opened.
void followSplits(QWidget& panel, const Splits& splits, std::function<void(std::span<const NodeId>)> report);

}  // namespace cleave::views
