#pragma once
/// Writes the report of a run.
#include "base/schema_rows.h"
#include "pipeline/report/run_report.h"
#include "plan/plan.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

/// "tolerance 0.0001 + 0.0001 × the expected value" for a tolerance of the user; otherwise the rounding and the ruler.
std::string toleranceText(const RunReport& report);

/// Schema "cleave.run/1"; `passed` is true, false, or null without a comparison.
std::string toJson(const RunReport& report, const plan::Plan& plan);
/// The fields of such a file, for docs/file-formats.md.
std::vector<schema::Row> reportRows();

}  // namespace cleave::pipeline
