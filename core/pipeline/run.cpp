#include "pipeline/run.h"

#include "base/output_file.h"
#include "base/quantities.h"
#include "base/temporary_folder.h"
#include "pipeline/compare.h"
#include "pipeline/conduct.h"
#include "pipeline/folder_check.h"
#include "pipeline/generation.h"
#include "pipeline/plan_again.h"
#include "pipeline/solve.h"

#include <algorithm>
#include <map>

namespace cleave::pipeline {
namespace {

struct RankFiles {
  fs::path plan, output;
  fs::path step;       ///< of a run that generates: the plan of a step behind the prompt
  fs::path deviation;  ///< "FILE.r": the outputs of a rank r that are not rank 0's
  std::optional<fs::path> input;
};

/// What runs; the request says how.
struct Plans {
  const plan::Plan& plan;
  const plan::Plan* step = nullptr;  ///< of a run that generates
};

Result<launch::RunOutcome> launchRanks(const Plans& plans, launch::Backend backend, const RankFiles& files,
                                       const RunRequest& request, const launch::Observer& observer,
                                       const Progress& progress) {
  const plan::Plan& plan = plans.plan;
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(plan)));
  launch::LaunchRequest launch;
  launch.rankProgram = request.rankProgram;
  if (launch.rankProgram.empty()) {
    CLEAVE_TRY(launch.rankProgram, launch::rankProgram());
  }
  launch.planFile = files.plan;
  launch.ranks = plan.ranks;
  launch.backend = backend;
  // Of training the outputs are all parameters: not gathered where nobody wants them.
  if (request.wantsOutputs() || !request.training.isAsked())
    launch.rankArguments = {"--output", files.output.string(), "--deviation", files.deviation.string()};
  std::ranges::copy(rankArguments(request), std::back_inserter(launch.rankArguments));
  if (plans.step) {
    CLEAVE_TRY_VOID(writeFile(files.step, plan::toJson(*plans.step)));
    launch.rankArguments.insert(launch.rankArguments.end(), {"--decode", files.step.string()});
  }
  return launch::launch(launch, observer, progress);
}

/// Of the outputs, and of all that a rank may write with them, with its names.
std::int64_t mostOutputBytes(const plan::Plan& plan) {
  std::int64_t bytes = std::int64_t{64} << 20;
  for (const graph::Output& output : plan.program->outputs) bytes += plan.program->bytesOf(output.value);
  for (const program::ParameterShards& parameter : plan.parameters) bytes += graph::sizeInBytes(parameter.type);
  return bytes;
}

/// The same where somebody else starts the ranks: their plan may be another, for this process gave them none.
Result<launch::RunOutcome> attendRanks(const RunRequest& request, const RankFiles& files,
                                       const launch::Observer& observer, const Progress& progress) {
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(*request.plan)));
  CLEAVE_TRY(const auto program, program::readRankProgram(files.plan));
  const std::string digest = fmt::format("{:016x}", program::digestOf(program));
  launch::AttendRequest attended{.ranks = request.plan->ranks, .joinMs = request.attended->joinMs};
  attended.notice = request.attended->notice;
  if (request.wantsOutputs()) {
    attended.output = files.output;
    attended.deviation = files.deviation;
    attended.maxOutputBytes = mostOutputBytes(*request.plan);
  }
  CLEAVE_TRY(auto outcome, request.attended->listener->attend(attended, observer, progress));
  for (std::size_t rank = 0; outcome.succeeded && rank < outcome.results.size(); ++rank) {
    const std::string& own = outcome.results[rank]->program;
    if (own == digest) continue;
    return fail(ErrorCode::BadInput,
                "Rank {} ran another plan than this one ({}, not {}): copy the plan's file to all nodes.", rank, own,
                digest);
  }
  return outcome;
}

/// The file to compare with; empty: nothing is asked for.
Result<fs::path> expectedFile(RunReport& report, const RunRequest& request, const std::shared_ptr<const Model>& model,
                              const RankFiles& files, const TemporaryFolder& folder, const Progress& progress) {
  if (request.expect) {
    report.comparedWith = request.expect->filename().string();
    return *request.expect;
  }
  if (!request.comparesUnsplit()) return fs::path();
  progress.report("unsplit run");
  CLEAVE_TRY(const auto plan, unsplitPlan(model, *request.plan, progress));
  const RankFiles unsplit{.plan = folder / "unsplit-plan.json",
                          .output = folder / "unsplit.safetensors",
                          .step = folder / "unsplit-step.json",
                          .deviation = folder / "unsplit.rank",
                          .input = files.input};
  std::shared_ptr<const plan::Plan> step;
  if (request.step) {
    CLEAVE_TRY(step, planStep(*plan, progress));
  }
  RunRequest alone = request;
  alone.recordsTimes = false;
  CLEAVE_TRY(const auto outcome, launchRanks(
                                     {*plan, step.get()}, launch::Backend::Gloo, unsplit, alone,
                                     [](const launch::RankEvent&) {}, progress));
  if (!outcome.succeeded) {
    const launch::RankExit& failure = *outcome.firstFailure;
    return fail(failure.code, "The unsplit run that the ranks are compared with failed: it {}. {}", failure.what,
                failure.lastWords);
  }
  report.comparedWith = "an unsplit run";
  return unsplit.output;
}

/// Every rank holds all outputs whole. Those of rank 0 are compared, and with them the ranks that computed the same bit
/// for bit; any other rank has written its own.
Result<void> compareOutputs(RunReport& report, const RunRequest& request, const RankFiles& files,
                            const fs::path& expected) {
  const program::Training& training = request.training;
  Comparison comparison{.rtol = request.rtol,
                        .atol = request.atol,
                        .isTraining = training.isAsked(),
                        .moves = 2 * training.learningRate * static_cast<double>(training.steps)};
  if (training.isAsked()) {
    CLEAVE_TRY(comparison.otherNames, otherNamesIn(*request.plan, expected));
  }
  // An unsplit run of the same program has the same where there is padding.
  if (request.expect && files.input && !training.isAsked()) {
    CLEAVE_TRY(comparison.padding, paddingOf(*request.plan, *files.input));
  }
  for (int rank = 0; rank < request.plan->ranks; ++rank) {
    const auto& results = report.outcome.results;
    const bool isSame = results[static_cast<std::size_t>(rank)]->outputDigests == results.front()->outputDigests;
    if (rank > 0 && isSame) continue;
    const fs::path file = rank == 0 ? files.output : fs::path(fmt::format("{}.{}", files.deviation.string(), rank));
    if (rank > 0)
      report.notes.push_back(
          fmt::format("Rank {} did not compute the very bits of rank 0: its outputs are compared too.", rank));
    if (report.generation) {
      CLEAVE_TRY(OutputDifference tokens, compareTokens(file, expected, report.generation->firstDifference));
      tokens.rank = rank;
      report.outputs.push_back(std::move(tokens));
      continue;
    }
    CLEAVE_TRY(auto differences, compareTensors(file, expected, comparison));
    for (OutputDifference& difference : differences) {
      difference.rank = rank;
      report.outputs.push_back(std::move(difference));
    }
  }
  return {};
}

void notePadding(RunReport& report) {
  const auto padded = std::find_if(report.outputs.begin(), report.outputs.end(),
                                   [](const OutputDifference& output) { return output.padding > 0; });
  if (padded == report.outputs.end()) return;
  report.notes.push_back(fmt::format("{} of {} {} padding and not compared.", padded->padding,
                                     counted(padded->positions, "position"), padded->padding == 1 ? "is" : "are"));
}

/// Parameters of another type than the model's are cast while they are loaded, as from_pretrained does.
void noteCasts(RunReport& report, const RunRequest& request) {
  if (!request.readsWeights()) return;
  std::map<std::string, std::int64_t> byType;
  for (const program::ParameterShards& parameter : request.plan->parameters) {
    if (parameter.isStoredFor(0) && parameter.storedDtype != parameter.type.dtype)
      ++byType[fmt::format("stored as {} and computed in {}", graph::toText(parameter.storedDtype),
                           graph::toText(parameter.type.dtype))];
  }
  for (const auto& [how, count] : byType)
    report.notes.push_back(fmt::format("{} of {} {} {}.", count,
                                       counted(std::ssize(request.plan->parameters), "parameter"),
                                       count == 1 ? "is" : "are", how));
}

/// Weights that hold no numbers leave none in the outputs, however they are split; and no label leaves no loss.
Result<void> explainNotANumber(RunReport& report, const RunRequest& request, const RankFiles& files,
                               const Progress& progress) {
  const bool isNumber = std::all_of(report.outputs.begin(), report.outputs.end(),
                                    [](const OutputDifference& o) { return o.notANumber == 0; });
  if (isNumber) return {};
  const auto isLossAlone = std::all_of(report.outputs.begin(), report.outputs.end(), [](const OutputDifference& o) {
    return (o.notANumber > 0) == (o.name == "loss");
  });
  if (isLossAlone && files.input) {
    CLEAVE_TRY(const bool isNone, leavesNoLabel(*files.input));
    if (isNone) {
      report.notes.push_back(
          "Every label is -100, so that the loss is the average of none and not a number, whether the model is split "
          "or not: give a label to compare it.");
      return {};
    }
  }
  if (request.skipWeights) return {};
  const auto weight = weightThatIsNotFinite(request.plan->model, progress);
  if (progress.cancelled()) return progress.cancelledError("comparing the outputs");
  if (weight && !weight->empty()) report.notes.push_back(*weight);
  return {};
}

/// The largest difference that half precision alone explains grows with the model; nothing in the numbers tells it from
/// a wrong split.
void noteRounding(RunReport& report, const RunRequest& request) {
  const plan::ModelInfo& model = request.plan->model;
  const bool isHalf = model.dtype == graph::DType::BFloat16 || model.dtype == graph::DType::Float16;
  const bool isWithin = std::all_of(report.outputs.begin(), report.outputs.end(), [](const OutputDifference& output) {
    return output.within() || output.notANumber > 0;
  });
  if (!isHalf || isWithin) return;
  if (report.generation) {
    report.notes.push_back(
        fmt::format("Rounding in {} may choose another token where two are about as likely: plan with --dtype float32 "
                    "to tell a wrong "
                    "split.",
                    graph::toText(model.dtype)));
    return;
  }
  const std::string advice = model.isExported ? "export the model in float32" : "plan it with --dtype float32";
  report.notes.push_back(
      fmt::format("Rounding in {} may differ by more than the tolerance: {}, where it is {}, to tell a wrong split.",
                  graph::toText(model.dtype), advice, defaultTolerance(graph::DType::Float32)));
}

/// Before anything starts: a rank would say the same.
Result<void> checkTraining(const RunRequest& request) {
  if (!request.training.isAsked()) return {};
  CLEAVE_TRY_VOID(program::check(request.training));
  const plan::Plan& plan = *request.plan;
  if (!plan.costSettings.isTraining)
    return fail(ErrorCode::BadInput, "The plan is not for training: plan again with --train.");
  if (plan.backward) return {};
  CLEAVE_TRY_VOID(program::backwardOf(*plan.program, plan.parameters, plan.ranks, plan.checkpointed));
  return {};
}

/// What the run generated, and what its ranks told of it.
Result<void> takeGenerated(RunReport& report, const RunRequest& request, const RankFiles& files,
                           const std::map<int, protocol::Generated>& told) {
  std::vector<protocol::Generated> byRank;
  for (const auto& [rank, generated] : told) byRank.push_back(generated);
  CLEAVE_TRY(report.generation,
             generationReport(files.output, request.generation, *request.plan, *request.step, byRank));
  // CUDA's allocator rounds up.
  constexpr std::int64_t kGpuRounding = 512;
  const std::int64_t rounding = report.backend == launch::Backend::Nccl ? kGpuRounding : 0;
  for (std::string& violation : cacheViolations(*report.generation, *request.step, rounding))
    report.violations.push_back(std::move(violation));
  return {};
}

Result<std::vector<std::string>> checkExpectation(const RunRequest& request) {
  if (request.generation.isAsked()) {
    CLEAVE_TRY(const TokenRows prompt, readPrompt(*request.input));
    CLEAVE_TRY_VOID(checkExpectedTokens(prompt, *request.expect));
    return std::vector<std::string>();
  }
  return request.training.isAsked() ? checkExpectedTraining(*request.plan, request.training.steps, *request.expect)
                                    : checkExpected(*request.plan, *request.expect);
}

std::map<int, MemoryComparison> memoryByRank(const std::map<int, protocol::MemoryAccount>& accounts,
                                             const launch::RunOutcome& outcome, const RunRequest& request) {
  std::map<int, MemoryComparison> byRank;
  for (const auto& [rank, account] : accounts) {
    const auto& result = outcome.results[static_cast<std::size_t>(rank)];
    if (!result) continue;
    byRank[rank] =
        compareMemory(account, *request.plan, request.training.isAsked(), result->peak.process - result->peak.program);
  }
  return byRank;
}

RunVerdict verdictOf(const RunReport& report) {
  const bool isWithin = std::all_of(report.outputs.begin(), report.outputs.end(),
                                    [](const OutputDifference& output) { return output.within(); });
  if (!isWithin || !report.violations.empty()) return RunVerdict::Failed;
  return report.outputs.empty() ? RunVerdict::NotChecked : RunVerdict::Passed;
}

}  // namespace

double defaultTolerance(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::BFloat16: return 6e-2;
    case graph::DType::Float16: return 1e-2;
    case graph::DType::Float64: return 1e-8;
    default: return 1e-4;
  }
}

std::vector<std::string> rankArguments(const RunRequest& request) {
  std::vector<std::string> words;
  if (const auto input = request.inputFile()) words.insert(words.end(), {"--input", input->string()});
  if (request.skipWeights) words.emplace_back("--skip-weights");
  if (request.initMissing) words.emplace_back("--init-missing");
  if (request.recordsTimes && !request.generation.isAsked()) words.emplace_back("--times");
  std::ranges::copy(program::arguments(request.training), std::back_inserter(words));
  std::ranges::copy(program::arguments(request.generation), std::back_inserter(words));
  return words;
}

Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress) {
  RunReport report;
  std::string why;
  report.backend = request.backend;
  if (!request.attended) {
    CLEAVE_TRY(report.backend, launch::resolveBackend(request.backend, request.plan->ranks, &why));
  }
  report.rtol = request.rtol;
  report.atol = request.atol;
  report.warnings = request.plan->warnings;
  CLEAVE_TRY_VOID(checkTraining(request));
  if (!why.empty()) report.notes.push_back(why);
  const FolderCheck folderCheck = checkFolder(request);
  if (!folderCheck.holds()) return fail(ErrorCode::BadInput, "{}", folderCheck.text);
  std::shared_ptr<const Model> model;  // null: this run reads nothing of it
  if ((request.readsWeights() && !request.attended) || request.comparesUnsplit()) {
    CLEAVE_TRY(model, openSameModel(*request.plan, progress));
  }
  std::vector<MemoryCheck> checks;
  if (!request.attended) checks.push_back(checkMemory(*request.plan, report.backend, request.step.get()));
  if (request.comparesUnsplit()) checks.push_back(checkUnsplitMemory(*request.plan, request.step.get()));
  for (const MemoryCheck& memory : checks) {
    if (memory.fits()) continue;
    if (!request.ignoreMemory) return fail(ErrorCode::Environment, "{}", memory.text);
    report.notes.push_back(memory.text);
  }
  if (request.expect) {
    CLEAVE_TRY(const auto others, checkExpectation(request));
    for (const std::string& name : others) {
      report.notes.push_back(fmt::format("Not compared: {} of {}, because this run does not compute it.", name,
                                         request.expect->filename().string()));
    }
  }
  noteCasts(report, request);
  CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));
  const RankFiles files{.plan = folder / "plan.json",
                        .output = folder / "outputs.safetensors",
                        .step = folder / "step.json",
                        .deviation = folder / "outputs.rank",
                        .input = request.inputFile()};
  // Opened before anything runs: an output that cannot be written is known at once. Ranks write elsewhere, because what
  // is compared must be read again, which a pipe cannot.
  std::optional<OutputFile> output;
  if (request.output) {
    CLEAVE_TRY(output, OutputFile::open(*request.output, progress.stopToken()));
  }
  progress.report("run");
  TimelineCollector times(request.plan->ranks);
  std::map<int, protocol::MemoryAccount> accounts;
  std::map<int, protocol::Generated> generated;
  Conduct conduct(*request.plan, report.backend, !request.skipWeights, request.training);
  if (request.step) conduct.expectSteps(*request.step, request.generation.tokens - 1);
  report.training = request.training;
  const auto follow = [&](const launch::RankEvent& event) {
    conduct.observe(event);
    times.observe(event);
    if (const auto* account = event.message ? std::get_if<protocol::MemoryAccount>(&*event.message) : nullptr)
      accounts[event.rank] = *account;
    if (const auto* done = event.message ? std::get_if<protocol::Generated>(&*event.message) : nullptr)
      generated[event.rank] = *done;
    const auto* step = event.message ? std::get_if<protocol::TrainingStep>(&*event.message) : nullptr;
    if (step && event.rank == 0 && std::ssize(report.steps) < request.training.steps) report.steps.push_back(*step);
    observer(event);
  };
  if (request.attended) {
    CLEAVE_TRY(report.outcome, attendRanks(request, files, follow, progress));
  } else {
    CLEAVE_TRY(report.outcome,
               launchRanks({*request.plan, request.step.get()}, report.backend, files, request, follow, progress));
  }
  if (!report.outcome.succeeded) return report;
  report.violations = conduct.violations(report.outcome);
  report.memory = memoryByRank(accounts, report.outcome, request);
  if (request.step) {
    CLEAVE_TRY_VOID(takeGenerated(report, request, files, generated));
  } else if (auto timeline = times.timeline(*request.plan->program)) {
    report.timeline = *std::move(timeline);
  } else {
    report.notes.push_back(timeline.error().message);
  }
  CLEAVE_TRY(const fs::path expected, expectedFile(report, request, model, files, folder, progress));
  if (!expected.empty()) {
    progress.report("compare");
    CLEAVE_TRY_VOID(compareOutputs(report, request, files, expected));
    notePadding(report);
    CLEAVE_TRY_VOID(explainNotANumber(report, request, files, progress));
    noteRounding(report, request);
  }
  // Last: whatever `output` is a second name of has been read by now.
  if (output) {
    CLEAVE_TRY(const auto written, RandomAccessFile::open(files.output));
    CLEAVE_TRY_VOID(copyInto(*output, written));
    CLEAVE_TRY_VOID(output->finish());
  }
  report.verdict = verdictOf(report);
  return report;
}

}  // namespace cleave::pipeline
