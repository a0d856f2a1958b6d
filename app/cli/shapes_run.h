#pragma once
/// `run --shapes` and `train --shapes`: several shapes of one model, one after the other in the same ranks.
#include "cli/run_flags.h"

namespace cleave::cli {

/// Writes one document for all shapes, also if one of them fails and ends the run. The exit code is the worst of them.
Result<int> runShapes(RunFlags& flags, const Progress& progress);

}  // namespace cleave::cli
