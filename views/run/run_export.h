#pragma once
/// The files that the view writes about a finished run.
#include "views/session/runs.h"

namespace cleave::views {

/// The report in the format of `run --json`, with the samples of each rank as `watched`.
QString runToJson(const RunState& state);
/// The memory samples of all ranks.
QString runToCsv(const RunState& state);

}  // namespace cleave::views
