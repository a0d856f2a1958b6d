#pragma once
/// Reads the report of a run again (schema "cleave.run/1", which report.h writes): for runs that are kept and compared.
///
/// Foreign input: bounded, and every field is checked. What a report has only in words of its plan's graph (the longest
/// operators, nodes whose memory is farthest off) is not read, nor are lanes, which it does not have: the timeline has
/// sums alone. A report of an older version lacks fields, which then keep their defaults.
///
///     CLEAVE_TRY(const PastRun run, readReport(text, "run.json"));
///     run.report.steps.back().loss;
#include "pipeline/report.h"

#include <string>
#include <string_view>
#include <vector>

namespace cleave::pipeline {

/// What a report says of the plan that was run.
struct PlanOfReport {
  std::string model, architecture, dtype, engine, menu, sequenceParallel, deviceProfile;
  std::vector<std::string> demands;
  std::int64_t batch = 0, sequence = 0;  ///< 0: not said
  int ranks = 1;
  std::int64_t collectives = 0, predictedMemory = 0;
};

struct PastRun {
  PlanOfReport plan;
  RunReport report;
  double predictedStepNs = 0;  ///< 0: not said
  /// Of a training step its last, else of a forward pass: by rank 0.
  std::optional<double> loss() const;
  /// Microseconds: the median of all training steps, else of the forward pass on the slowest rank; nullopt: no rank was
  /// through.
  std::optional<double> stepMicroseconds() const;
};

inline constexpr std::int64_t kMostReportBytes = 8 << 20;
inline constexpr int kMostReportedRanks = 4096;

/// BadInput names the field, what it is and what it must be; `where` names the file.
Result<PastRun> readReport(std::string_view text, std::string_view where);

}  // namespace cleave::pipeline
