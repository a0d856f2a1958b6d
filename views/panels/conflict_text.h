#pragma once
/// What the conflict card says, as rich text with links.
#include "views/base/rich_text.h"
#include "views/session/plans.h"

namespace cleave::views {

/// About the conflict of the present step; without one, about the search (why there is no solution; where conflicts
/// are).
QString conflictText(const Plans& plans, const Debugger& debugger, const TextColors& colors);

}  // namespace cleave::views
