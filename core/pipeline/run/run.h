#pragma once
/// The last stage: runs the ranks of a plan on this machine, or follows remote ones, and compares their outputs.
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/report/run_report.h"
#include "pipeline/run/run_request.h"

namespace cleave::pipeline {

/// Runs the ranks, and the unsplit run on request. Compares the outputs with the expected ones, and the reads,
/// allocations and collectives of each rank with the plan. The outputs of training are the losses of all steps and the
/// final parameters; `expect` may have any of these. The outputs of generation are the tokens. `observer` sees every
/// event of the split run.
///
/// These errors occur before any rank starts: Environment if the ranks or the unsplit run do not fit into memory;
/// BadInput if `expect` lacks an output or has another shape, `checkFolder` does not hold, or the folder has another
/// model than the plan.
Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress = {});

}  // namespace cleave::pipeline
