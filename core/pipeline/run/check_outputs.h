#pragma once
/// Compares the outputs of a run with the expected outputs, and gives the verdict.
#include "base/files.h"
#include "base/progress.h"
#include "pipeline/report/run_report.h"
#include "pipeline/run/rank_launch.h"
#include "pipeline/run/run_request.h"

#include <cstdint>
#include <functional>
#include <optional>

namespace cleave::pipeline {

/// The outputs of the unsplit run, and of the unsplit run with its sums in another order (rounding.h).
struct RulerFiles {
  fs::path unsplit, reordered;
};
/// Makes these files. It is called if a difference is larger than the rounding of one sum. `again` is the number of
/// earlier calls; each call adds the sums in another number of parts. Nullopt: the unsplit run does not fit into
/// memory, and the callee notes that.
using MeasureRuler = std::function<Result<std::optional<RulerFiles>>(int again)>;

/// Compares the outputs of the ranks with the expected ones, and explains differences. `report` has the outcome of the
/// ranks. `steps`: the number of training steps that the parameters went through.
Result<void> compareWith(const fs::path& expected, RunReport& report, const RunRequest& request, const RankFiles& files,
                         std::int64_t steps, const MeasureRuler& measure, const Progress& progress);

RunVerdict verdictOf(const RunReport& report);

}  // namespace cleave::pipeline
