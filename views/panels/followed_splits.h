#pragma once
/// How a table follows the splits: a burst of steps is told together, a little behind the canvas.
#include <QWidget>
#include <functional>
#include <span>

#include "views/session/splits.h"

namespace cleave::views {

/// Calls `tell` with what changed since the last call, ascending, each once. Ends with the panel; what is pending of a
/// model that was left is forgotten.
void followSplits(QWidget& panel, const Splits& splits, std::function<void(std::span<const NodeId>)> tell);

}  // namespace cleave::views
