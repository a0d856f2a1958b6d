#pragma once
/// Checks and notes before the ranks of a run start.
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/report/run_report.h"
#include "pipeline/run/run_request.h"

namespace cleave::pipeline {

/// The communication backend for the ranks of this request on this machine; see launch::chooseBackend.
Result<launch::BackendChoice> backendFor(const RunRequest& request, const Progress& progress);
/// The report with all that is known before the ranks start. BadUsage or BadInput for errors that a rank would report
/// later, or if the folder is missing.
Result<RunReport> beginReport(const RunRequest& request, const launch::BackendChoice& choice);
/// Environment if the ranks or the unsplit run do not fit into memory. With `ignoreMemory` this is only a note.
Result<void> checkRoom(const RunRequest& request, launch::Backend backend, RunReport& report);

}  // namespace cleave::pipeline
