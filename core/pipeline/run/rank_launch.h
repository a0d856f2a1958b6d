#pragma once
/// Starts the ranks of a plan, or waits for ranks that the user starts.
#include "base/files.h"
#include "base/progress.h"
#include "launch/launcher.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/rank_files.h"
#include "pipeline/run/run_request.h"
#include "pipeline/run/unsplit_place.h"
#include "plan/plan.h"
#include "spec/rank/rank_spec.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::pipeline {

/// The options of every rank, without backend and files to write.
spec::RankSpec rankSpecOf(const RunRequest& request);

/// Writes the plan, and starts its ranks on this machine. `then`: plans that run afterwards on the same weights.
Result<launch::RunOutcome> launchRanks(const plan::Plan& plan, launch::Backend backend, const RankFiles& files,
                                       const RunRequest& request, const launch::Observer& observer,
                                       const Progress& progress, const std::vector<spec::RankPlan>& then = {});
/// The same for ranks that the user starts. BadInput if a rank ran a different plan.
Result<launch::RunOutcome> followRemoteRanks(const RunRequest& request, const RankFiles& files,
                                             const launch::Observer& observer, const Progress& progress);
/// The same for the unsplit run. It is an error if this run fails, or if the files in `model` have changed at its end.
Result<void> launchUnsplit(const plan::Plan& plan, const UnsplitPlace& place, const RankFiles& files,
                           const RunRequest& request, const ModelFiles& model, const Progress& progress,
                           const std::vector<spec::RankPlan>& then = {});

}  // namespace cleave::pipeline
