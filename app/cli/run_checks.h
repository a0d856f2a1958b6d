#pragma once
/// What must hold before a run starts. runPlan checks the same; these errors name the flags to use.
#include "base/progress.h"
#include "pipeline/run/run_request.h"

namespace cleave::cli {

/// BadInput if files that the run reads are missing, changed or incomplete.
Result<void> checkModelFiles(const pipeline::RunRequest& request);
/// Environment if the ranks, or the unsplit run that they are compared with, do not fit into memory.
Result<void> checkMemoryFits(const pipeline::RunRequest& request, const Progress& progress);

}  // namespace cleave::cli
