#pragma once
/// Reads the report of a run (schema "cleave.run/1", written by report.h), so that runs can be kept and compared.
///
/// Foreign input: bounded, and every field is checked. The reader skips fields that need the plan's graph: the longest
/// operators, and the nodes with the largest memory differences. A report has no lanes, so the timeline has only sums.
/// Fields that an older report lacks keep their defaults.
///
///     CLEAVE_TRY(const PastRun run, readReport(text, "run.json"));
///     run.report.steps.back().loss;
#include "pipeline/report/past_run.h"

#include <cstdint>
#include <string_view>

namespace cleave::pipeline {

inline constexpr std::int64_t kMostReportBytes = 8 << 20;

/// BadInput names the field, its value and what it must be; `where` names the file.
Result<PastRun> readReport(std::string_view text, std::string_view where);

}  // namespace cleave::pipeline
