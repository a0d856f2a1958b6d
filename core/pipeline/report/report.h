#pragma once
/// Writes the report of a run.
#include "pipeline/report/run_report.h"
#include "plan/plan.h"

#include <string>

namespace cleave::pipeline {

/// "tolerance 0.0001 + 0.0001 × the expected value" for a tolerance of the user; otherwise the rounding and the ruler.
std::string toleranceText(const RunReport& report);

/// Schema "cleave.run/1"; `passed` is true, false, or null without a comparison.
std::string toJson(const RunReport& report, const plan::Plan& plan);

}  // namespace cleave::pipeline
