#pragma once
/// `run --bisect`: where the split model first computes something else.
#include "base/progress.h"
#include "base/result.h"
#include "pipeline/bisect/bisect.h"

#include <string>

namespace cleave::cli {

/// Runs it, writes the report to `json` (empty: nowhere; "-": standard output), and says in words what was found.
/// Answers the exit code: 1 where there is a difference.
Result<int> runBisection(const pipeline::BisectRequest& request, const std::string& json, const Progress& progress);

}  // namespace cleave::cli
