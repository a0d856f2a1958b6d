#include "pipeline/run/run.h"

#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "pipeline/run/check_outputs.h"
#include "pipeline/run/folder_check.h"
#include "pipeline/run/follower.h"
#include "pipeline/run/modes.h"
#include "pipeline/run/prepare_run.h"
#include "pipeline/run/rank_launch.h"
#include "pipeline/run/unsplit_runs.h"
#include "pipeline/source/planned_model.h"

#include <optional>

namespace cleave::pipeline {
namespace {

/// The plan's model; null if this run does not read it.
Result<std::shared_ptr<const Model>> openModelIfRead(const RunRequest& request, const Progress& progress) {
  const bool readsWeightsHere = request.readsWeights() && !request.remote;
  if (!readsWeightsHere && !request.comparesUnsplit()) return std::shared_ptr<const Model>();
  return openSameModel(*request.plan, progress);
}

/// BadInput if `expect` does not fit the run. Notes the tensors that are not compared.
Result<void> checkExpectation(const RunRequest& request, RunReport& report) {
  if (!request.expect) return {};
  CLEAVE_TRY(const auto others, stepsOf(request).compare(request));
  for (const std::string& name : others) {
    report.notes.push_back(fmt::format("Not compared: {} of {}, because this run does not compute it.", name,
                                       request.expect->filename().string()));
  }
  return {};
}

RankFiles filesIn(const TemporaryFolder& folder, const RunRequest& request) {
  return {.plan = folder / "plan.json",
          .output = folder / "outputs.safetensors",
          .deviation = folder / "outputs.rank",
          .input = request.inputFile(),
          .step = folder / "step.json"};
}

/// Opened before the run, so that an output that cannot be written fails at once. Ranks write to a temporary file,
/// because the comparison reads it again and `output` may be a pipe.
Result<std::optional<OutputFile>> openOutput(const RunRequest& request, const Progress& progress) {
  std::optional<OutputFile> output;
  if (request.output) {
    CLEAVE_TRY(output, OutputFile::open(*request.output, progress.stopToken()));
  }
  return output;
}

/// Copies the outputs of the ranks.
Result<void> writeOutput(std::optional<OutputFile>& output, const RankFiles& files) {
  if (!output) return {};
  CLEAVE_TRY(const auto written, RandomAccessFile::open(files.output));
  CLEAVE_TRY_VOID(copyInto(*output, written));
  return output->finish();
}

/// Runs the ranks, started here or by the user.
Result<launch::RunOutcome> runRanks(const RunRequest& request, launch::Backend backend, const RankFiles& files,
                                    Follower& follower, const launch::Observer& observer, const Progress& progress) {
  progress.report("run");
  const auto follow = [&](const launch::RankEvent& event) {
    follower.observe(event);
    observer(event);
  };
  return request.remote ? followRemoteRanks(request, files, follow, progress)
                        : launchRanks(*request.plan, backend, files, request, follow, progress);
}

/// The file to compare with; empty if the run has no comparison.
Result<fs::path> expectedFile(RunReport& report, const RunRequest& request, UnsplitRuns& unsplit) {
  if (request.expect) {
    report.comparedWith = request.expect->filename().string();
    return *request.expect;
  }
  if (!request.comparesUnsplit()) return fs::path();
  report.comparedWith = unsplit.place().text;
  if (!unsplit.place().note.empty()) report.notes.push_back(unsplit.place().note);
  return unsplit.run();
}

Result<void> compareWithExpected(RunReport& report, const RunRequest& request, const RankFiles& files,
                                 UnsplitRuns& unsplit, const Progress& progress) {
  CLEAVE_TRY(const fs::path expected, expectedFile(report, request, unsplit));
  if (expected.empty()) return {};
  const auto measure = [&](int again) { return unsplit.ruler(report.notes, again); };
  return compareWith(expected, report, request, files, request.training.steps, measure, progress);
}

/// A run of a changed plan does not pass, because equal outputs do not confirm what the plan predicts.
void failIfPlanChanged(RunReport& report, const plan::Plan& plan) {
  if (plan.seal != plan::Seal::Broken) return;
  const bool hasFailed = report.verdict == RunVerdict::Failed;
  (hasFailed ? report.notes : report.violations)
      .emplace_back(
          "The plan's file was changed after Cleave wrote it, and its predictions may be wrong. `check` reports the "
          "differences.");
  report.verdict = RunVerdict::Failed;
}

}  // namespace

Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress) {
  CLEAVE_TRY(const launch::BackendChoice choice, backendFor(request, progress));
  CLEAVE_TRY(RunReport report, beginReport(request, choice));
  CLEAVE_TRY(const auto model, openModelIfRead(request, progress));
  CLEAVE_TRY_VOID(checkRoom(request, report.spec.backend, report));
  CLEAVE_TRY_VOID(checkExpectation(request, report));
  CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));
  const RankFiles files = filesIn(folder, request);
  CLEAVE_TRY(auto output, openOutput(request, progress));
  const ModelFiles modelFiles(request);
  Follower follower(request);
  CLEAVE_TRY(report.outcome, runRanks(request, report.spec.backend, files, follower, observer, progress));
  report.steps = follower.steps();
  if (!report.outcome.succeeded) return report;
  follower.addTo(report);
  CLEAVE_TRY_VOID(stepsOf(request).collect(request, files, follower, report));
  UnsplitRuns unsplit(request, report.spec.backend, model, modelFiles, files, folder, progress);
  CLEAVE_TRY_VOID(compareWithExpected(report, request, files, unsplit, progress));
  CLEAVE_TRY_VOID(writeOutput(output, files));  // last: `output` may be a link to a file that the run reads
  report.verdict = verdictOf(report);
  failIfPlanChanged(report, *request.plan);
  return report;
}

}  // namespace cleave::pipeline
