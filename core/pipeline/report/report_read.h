#pragma once
/// Reads the report of a run (schema "cleave.run/1", written by report.h), so that runs can be kept and compared.
///
/// Foreign input: bounded, and every field is checked. The reader skips fields that need the plan's graph: the longest
/// operators, and the nodes with the largest memory differences. A report has no lanes, so the timeline has only sums.
/// Fields that an older report lacks keep their defaults.
///
///     CLEAVE_TRY(const PastRun run, readReport(text, "run.json"));
///     run.report.steps.back().loss;
#include "pipeline/report/run_report.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::pipeline {

/// The description of the plan in a report.
struct PlanOfReport {
  std::string model, architecture, dtype, engine, menu, sequenceParallel, deviceProfile;
  std::vector<std::string> demands;
  std::int64_t batch = 0, sequence = 0;  ///< 0: not in the report
  int ranks = 1;
  std::int64_t collectives = 0, predictedMemory = 0;
};

struct PastRun {
  PlanOfReport plan;
  RunReport report;
  double predictedStepNs = 0;  ///< 0: not in the report
  /// The loss of rank 0 in the last training step, or in the forward pass.
  std::optional<double> loss() const;
  /// The median of all training steps, or the time of the forward pass on the slowest rank; nullopt: no rank finished.
  std::optional<double> stepMicroseconds() const;
};

inline constexpr std::int64_t kMostReportBytes = 8 << 20;
inline constexpr int kMostReportedRanks = 4096;

/// BadInput names the field, its value and what it must be; `where` names the file.
Result<PastRun> readReport(std::string_view text, std::string_view where);

}  // namespace cleave::pipeline
