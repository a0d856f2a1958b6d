#pragma once
/// Measures this machine: ranks start, measure it together, and a device profile follows from that.
#include "base/progress.h"
#include "pipeline/calibrate/calibration.h"

#include <filesystem>

namespace cleave::pipeline {

struct CalibrationRequest {
  int ranks = 2;
  launch::Backend backend = launch::Backend::Auto;
  std::filesystem::path rankProgram;  ///< empty: the one installed with this program
};

/// Blocks for some seconds. BadUsage for fewer than 2 ranks, because one rank has no link to measure. Environment if
/// the backend is not available or the ranks do not fit into memory; then no rank starts. If a rank fails, all end, and
/// the error has its class, its number and its last output. `observer` sees every event.
Result<Calibration> calibrate(const CalibrationRequest& request, const launch::Observer& observer,
                              const Progress& progress = {});

}  // namespace cleave::pipeline
