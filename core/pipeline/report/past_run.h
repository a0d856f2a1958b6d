#pragma once
/// A run as its report describes it: the results, and what the report says about the plan.
#include "pipeline/report/run_report.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// The description of the plan in a report.
struct PlanOfReport {
  std::string model, architecture, dtype, engine, menu, sequenceParallel, deviceProfile;
  std::vector<std::string> demands;
  std::int64_t batch = 0, sequence = 0;  ///< 0: not in the report
  int ranks = 1;
  std::int64_t collectives = 0, predictedMemory = 0;
  std::vector<std::string> arguments = {};  ///< its settings as arguments of `cleave-cli plan`, without the model
};

/// Older reports lack the arguments and the mode.
struct PastRun {
  PlanOfReport plan;
  std::string mode;                    ///< "forward", "train", "generate", "shapes"
  std::vector<std::string> arguments;  ///< settings of the run, without those of the plan
  RunReport report;
  double predictedStepNs = 0;  ///< 0: not in the report
  /// The loss of rank 0 in the last training step, or in the forward pass.
  std::optional<double> loss() const;
  /// The median of all training steps, or the time of the forward pass on the slowest rank; nullopt: no rank finished.
  std::optional<double> stepMicroseconds() const;
};

inline constexpr int kMostReportedRanks = 4096;

}  // namespace cleave::pipeline
