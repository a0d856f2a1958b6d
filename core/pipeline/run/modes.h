#pragma once
/// What distinguishes the modes of a run of one plan: forward pass, training and generation. `runPlan` takes the same
/// way for all, and asks the mode at four points.
///
/// The two other modes are made of these: Shapes are passes at several shapes in the same processes (run_shapes.h), and
/// a bisection compares two forward passes value by value (pipeline/bisect/bisect.h).
#include "pipeline/report/run_report.h"
#include "pipeline/run/follower.h"
#include "pipeline/run/rank_files.h"
#include "pipeline/run/run_request.h"
#include "spec/rank/rank_spec.h"

#include <string>
#include <vector>

namespace cleave::pipeline {

struct ModeSteps {
  /// Checks the request, and notes in the report what a user should know before.
  Result<void> (*validate)(const RunRequest& request, RunReport& report);
  /// Sets the options of ranks that only this mode has.
  void (*launch)(const RunRequest& request, spec::RankSpec& spec);
  /// Adds what ranks wrote and reported beyond outputs.
  Result<void> (*collect)(const RunRequest& request, const RankFiles& files, const Follower& follower,
                          RunReport& report);
  /// BadInput if `expect` does not fit the run; else the names of its tensors that the run does not compute.
  Result<std::vector<std::string>> (*compare)(const RunRequest& request);
};

const ModeSteps& stepsOf(const RunRequest& request);

/// BadInput if the plan cannot be trained as asked.
Result<void> checkTraining(const RunRequest& request);

}  // namespace cleave::pipeline
