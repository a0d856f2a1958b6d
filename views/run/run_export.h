#pragma once
/// What the view writes of a run that has ended.
#include "views/session/runs.h"

namespace cleave::views {

/// The report as `run --json` writes it, with what was watched of each rank as `watched`.
QString runToJson(const RunState& state);
/// The samples of all ranks' memory.
QString runToCsv(const RunState& state);

}  // namespace cleave::views
