#pragma once
/// The conflict card's text, as rich text with links.
#include "views/base/rich_text.h"
#include "views/session/plans.h"

namespace cleave::views {

/// About the conflict at the current step. Without one, about the search: why there is no solution, or where the
/// conflicts are.
QString conflictText(const Plans& plans, const Debugger& debugger, const TextColors& colors);

}  // namespace cleave::views
