#pragma once
/// A stage beside the others: ranks start on this machine, measure it together, and a device profile follows.
#include "base/progress.h"
#include "pipeline/calibration.h"

#include <filesystem>

namespace cleave::pipeline {

struct CalibrationRequest {
  int ranks = 2;
  launch::Backend backend = launch::Backend::Auto;
  std::filesystem::path rankProgram;  ///< empty: the one installed with this program
};

/// Blocks for some seconds. BadUsage for fewer than 2 ranks, between which there is no link to be measured; Environment
/// when their backend cannot be had or they do not fit into memory, before any starts. A rank that fails ends all, with
/// its class of error, its name and its last words. `observer` sees every event.
Result<Calibration> calibrate(const CalibrationRequest& request, const launch::Observer& observer,
                              const Progress& progress = {});

}  // namespace cleave::pipeline
