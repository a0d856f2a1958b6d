#include "pipeline/run/rank_launch.h"

#include "base/output_file.h"
#include "launch/rank_program.h"
#include "pipeline/run/generation.h"
#include "pipeline/run/modes.h"
#include "plan/file/plan_file.h"
#include "program/rank_program.h"
#include "spec/rank/rank_settings.h"

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// An upper bound for the file that a rank writes: outputs, parameters and names.
std::int64_t mostOutputBytes(const plan::Plan& plan, int replicas) {
  std::int64_t bytes = std::int64_t{64} << 20;
  for (const graph::Output& output : plan.program->outputs) bytes += replicas * plan.program->bytesOf(output.value);
  for (const program::ParameterShards& parameter : plan.parameters) bytes += graph::sizeInBytes(parameter.type);
  return bytes;
}

}  // namespace

spec::RankSpec rankSpecOf(const RunRequest& request) {
  spec::RankSpec spec;
  spec.inputFile = request.inputFile();
  spec.skipWeights = request.skipWeights;
  spec.initMissing = request.initMissing;
  spec.replicas = request.replicas;
  spec.collectiveTimeout = request.collectiveTimeout.value_or(spec.collectiveTimeout);
  spec.recordsTimes = request.recordsTimes && !request.generation.isAsked();
  stepsOf(request).launch(request, spec);
  return spec;
}

Result<launch::RunOutcome> launchRanks(const plan::Plan& plan, launch::Backend backend, const RankFiles& files,
                                       const RunRequest& request, const launch::Observer& observer,
                                       const Progress& progress, const std::vector<spec::RankPlan>& then) {
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(plan)));
  launch::LaunchRequest launch;
  launch.rankProgram = request.rankProgram;
  if (launch.rankProgram.empty()) {
    CLEAVE_TRY(launch.rankProgram, launch::rankProgram());
  }
  launch.planFile = files.plan;
  launch.ranks = plan.spec.ranks * request.replicas;
  launch.backend = backend;
  launch.silence = request.silence;
  launch.teardown = request.teardown;
  spec::RankSpec spec = rankSpecOf(request);
  spec.then = then;
  // The outputs of training are all parameters: ranks gather them only on request.
  if (request.wantsOutputs() || !request.training.isAsked()) {
    spec.outputFile = files.output;
    spec.deviationFile = files.deviation;
  }
  if (request.step) {
    CLEAVE_TRY_VOID(writeFile(files.step, plan::toJson(*request.step)));
    spec.decodeFile = files.step;
  }
  launch.rankArguments = settings::argumentsOf(spec::rankSettings(), spec);
  return launch::launch(launch, observer, progress);
}

Result<launch::RunOutcome> followRemoteRanks(const RunRequest& request, const RankFiles& files,
                                             const launch::Observer& observer, const Progress& progress) {
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(*request.plan)));
  CLEAVE_TRY(const auto program, program::readRankProgram(files.plan));
  const std::string digest = fmt::format("{:016x}", program::digestOf(program));
  launch::FollowRequest follow{
      .ranks = request.mesh().ranks(), .silence = request.silence, .joinMs = request.remote->joinMs};
  follow.notice = request.remote->notice;
  if (request.wantsOutputs()) {
    follow.output = files.output;
    follow.deviation = files.deviation;
    follow.maxOutputBytes = mostOutputBytes(*request.plan, request.replicas);
  }
  CLEAVE_TRY(auto outcome, request.remote->listener->follow(follow, observer, progress));
  for (std::size_t rank = 0; outcome.succeeded && rank < outcome.results.size(); ++rank) {
    const std::string& own = outcome.results[rank]->program;
    if (own == digest) continue;
    return fail(ErrorCode::BadInput, "Rank {} ran a different plan ({}, not {}). Copy this plan file to all nodes.",
                rank, own, digest);
  }
  return outcome;
}

Result<void> launchUnsplit(const plan::Plan& plan, const UnsplitPlace& place, const RankFiles& files,
                           const RunRequest& request, const ModelFiles& model, const Progress& progress,
                           const std::vector<spec::RankPlan>& then) {
  RunRequest alone = request;
  alone.recordsTimes = false;
  alone.replicas = 1;
  if (request.step) {
    CLEAVE_TRY(alone.step, planStep(plan, progress));
  }
  const auto noObserver = [](const launch::RankEvent&) {};
  const auto outcome = launchRanks(plan, place.backend, files, alone, noObserver, progress, then);
  if (!outcome && outcome.error().code == ErrorCode::Cancelled)
    return progress.cancelledError("the unsplit run for the comparison was running");
  if (!outcome) return tl::unexpected(outcome.error());
  CLEAVE_TRY_VOID(model.checkUnchanged());
  if (outcome->succeeded) return {};
  const launch::RankExit& failure = *outcome->firstFailure;
  return fail(failure.code, "The unsplit run for the comparison failed: it {}. {}", failure.what, failure.lastMessage);
}

}  // namespace cleave::pipeline
