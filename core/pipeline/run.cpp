#include "pipeline/run.h"

#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "pipeline/compare.h"
#include "pipeline/generation.h"
#include "pipeline/plan_again.h"
#include "pipeline/run_steps.h"
#include "pipeline/solve.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace cleave::pipeline {
namespace {

/// Of the outputs, and of all that a rank may write with them, with its names.
std::int64_t mostOutputBytes(const plan::Plan& plan, int replicas) {
  std::int64_t bytes = std::int64_t{64} << 20;
  for (const graph::Output& output : plan.program->outputs) bytes += replicas * plan.program->bytesOf(output.value);
  for (const program::ParameterShards& parameter : plan.parameters) bytes += graph::sizeInBytes(parameter.type);
  return bytes;
}

/// The same where somebody else starts the ranks: their plan may be another, for this process gave them none.
Result<launch::RunOutcome> attendRanks(const RunRequest& request, const RankFiles& files,
                                       const launch::Observer& observer, const Progress& progress) {
  CLEAVE_TRY_VOID(writeFile(files.plan, plan::toJson(*request.plan)));
  CLEAVE_TRY(const auto program, program::readRankProgram(files.plan));
  const std::string digest = fmt::format("{:016x}", program::digestOf(program));
  launch::AttendRequest attended{
      .ranks = request.mesh().ranks(), .silence = request.silence, .joinMs = request.attended->joinMs};
  attended.notice = request.attended->notice;
  if (request.wantsOutputs()) {
    attended.output = files.output;
    attended.deviation = files.deviation;
    attended.maxOutputBytes = mostOutputBytes(*request.plan, request.replicas);
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

/// The model with the rows of all replicas.
Result<std::shared_ptr<const Model>> withAllRows(const std::shared_ptr<const Model>& model, const RunRequest& request,
                                                 const Progress& progress) {
  if (request.replicas == 1) return model;
  return openModelOf(withRowsOf(request.plan->model, request.replicas), progress);
}

/// The runs of the whole model in one process that the ranks are compared with.
class UnsplitRuns {
 public:
  /// All must outlive it. `model` may be null.
  UnsplitRuns(const RunRequest& request, const RunReport& report, std::shared_ptr<const Model> model,
              const ModelFiles& modelFiles, const RankFiles& files, const TemporaryFolder& folder,
              const Progress& progress)
      : m_request(request),
        m_place(unsplitPlace(*request.plan, request.workload(), report.backend)),
        m_model(std::move(model)),
        m_modelFiles(modelFiles),
        m_files(files),
        m_folder(folder),
        m_progress(progress) {}

  const UnsplitPlace& place() const { return m_place; }

  /// Its outputs.
  Result<fs::path> run() {
    m_progress.report("unsplit run");
    CLEAVE_TRY(const auto whole, wholeModel());
    CLEAVE_TRY(const auto plan, unsplitPlan(whole, *m_request.plan, m_progress));
    CLEAVE_TRY(m_output, launched(*plan, "unsplit"));
    return *m_output;
  }

  Result<std::optional<RulerFiles>> ruler(std::vector<std::string>& notes, int again) {
    const bool isOnCpus = m_place.backend == launch::Backend::Gloo;
    if (!m_output && isOnCpus && !m_request.ignoreMemory) {
      const MemoryCheck memory = checkUnsplitMemory(*m_request.plan, m_request.workload());
      if (!memory.fits()) {
        notes.push_back(fmt::format("How far rounding alone moves the outputs is not known. {}", memory.text));
        return std::nullopt;
      }
    }
    if (!m_output) CLEAVE_TRY_VOID(run());
    CLEAVE_TRY(const auto whole, wholeModel());
    CLEAVE_TRY(const auto plan, reorderedPlan(whole, *m_request.plan, m_progress, again));
    m_progress.report("ruler");
    CLEAVE_TRY(fs::path reordered, launched(*plan, "reordered"));
    return RulerFiles{*m_output, std::move(reordered)};
  }

 private:
  Result<std::shared_ptr<const Model>> wholeModel() {
    if (!m_model) {
      CLEAVE_TRY(m_model, openSameModel(*m_request.plan, m_progress));
    }
    return withAllRows(m_model, m_request, m_progress);
  }

  Result<fs::path> launched(const plan::Plan& plan, const std::string& name) {
    const RankFiles files{.plan = m_folder / (name + "-plan.json"),
                          .output = m_folder / (name + ".safetensors"),
                          .deviation = m_folder / (name + ".rank"),
                          .input = m_files.input,
                          .step = m_folder / (name + "-step.json")};
    CLEAVE_TRY_VOID(launchUnsplit(plan, m_place, files, m_request, m_modelFiles, m_progress));
    return files.output;
  }

  const RunRequest& m_request;
  const UnsplitPlace m_place;
  std::shared_ptr<const Model> m_model;
  const ModelFiles& m_modelFiles;
  const RankFiles& m_files;
  const TemporaryFolder& m_folder;
  const Progress& m_progress;
  std::optional<fs::path> m_output;  ///< of the unsplit run, once it was made
};

/// The file to compare with; empty: nothing is asked for.
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

/// What the run generated, and what its ranks told of it.
Result<void> takeGenerated(RunReport& report, const RunRequest& request, const RankFiles& files,
                           const std::map<int, protocol::Generated>& told) {
  CLEAVE_TRY(const std::vector<std::string> unheeded, unheededIn(request.plan->model));
  if (!unheeded.empty())
    report.notes.push_back(
        fmt::format("Each token is the likeliest; transformers' generate chooses others, because the "
                    "model's generation config has {}.",
                    fmt::join(unheeded, ", ")));
  std::vector<protocol::Generated> byRank;
  for (const auto& [rank, generated] : told) byRank.push_back(generated);
  CLEAVE_TRY(report.generation,
             generationReport(files.output, request.generation, *request.plan, *request.step, byRank));
  for (std::string& violation : cacheViolations(*report.generation)) report.violations.push_back(std::move(violation));
  return {};
}

Result<std::vector<std::string>> checkExpectation(const RunRequest& request) {
  if (request.generation.isAsked()) {
    CLEAVE_TRY(const TokenRows prompt, readPrompt(*request.input));
    CLEAVE_TRY_VOID(checkExpectedTokens(prompt, *request.expect));
    return std::vector<std::string>();
  }
  return request.training.isAsked() ? checkExpectedTraining(*request.plan, request.training.steps, *request.expect)
                                    : checkExpected(*request.plan, *request.expect, request.replicas);
}

/// A run of a changed plan does not pass, because equal outputs do not confirm what the plan predicts.
void refuseToPass(RunReport& report) {
  const bool hasFailed = report.verdict == RunVerdict::Failed;
  (hasFailed ? report.notes : report.violations)
      .emplace_back(
          "The plan's file was changed after Cleave wrote it, and its predictions may be wrong. `check` says what "
          "differs.");
  report.verdict = RunVerdict::Failed;
}

}  // namespace

std::vector<std::string> rankArguments(const RunRequest& request) {
  std::vector<std::string> words;
  if (const auto input = request.inputFile()) words.insert(words.end(), {"--input", input->string()});
  if (request.skipWeights) words.emplace_back("--skip-weights");
  if (request.initMissing) words.emplace_back("--init-missing");
  if (request.replicas > 1) words.insert(words.end(), {"--replicas", std::to_string(request.replicas)});
  if (request.collectiveTimeout)
    words.insert(words.end(), {"--collective-timeout", std::to_string(request.collectiveTimeout->count())});
  if (request.recordsTimes && !request.generation.isAsked()) words.emplace_back("--times");
  std::ranges::copy(program::arguments(request.training), std::back_inserter(words));
  std::ranges::copy(program::arguments(request.generation), std::back_inserter(words));
  return words;
}

Result<RunReport> runPlan(const RunRequest& request, const launch::Observer& observer, const Progress& progress) {
  CLEAVE_TRY(const launch::BackendChoice choice, backendFor(request, progress));
  CLEAVE_TRY(RunReport report, beginReport(request, choice));
  std::shared_ptr<const Model> model;  // null: this run reads nothing of it
  if ((request.readsWeights() && !request.attended) || request.comparesUnsplit()) {
    CLEAVE_TRY(model, openSameModel(*request.plan, progress));
  }
  CLEAVE_TRY_VOID(checkRoom(request, report.backend, report));
  if (request.expect) {
    CLEAVE_TRY(const auto others, checkExpectation(request));
    for (const std::string& name : others) {
      report.notes.push_back(fmt::format("Not compared: {} of {}, because this run does not compute it.", name,
                                         request.expect->filename().string()));
    }
  }
  CLEAVE_TRY(const auto folder, TemporaryFolder::make("cleave-run"));
  const RankFiles files{.plan = folder / "plan.json",
                        .output = folder / "outputs.safetensors",
                        .deviation = folder / "outputs.rank",
                        .input = request.inputFile(),
                        .step = folder / "step.json"};
  // Opened before anything runs: an output that cannot be written is known at once. Ranks write elsewhere, because what
  // is compared must be read again, which a pipe cannot.
  std::optional<OutputFile> output;
  if (request.output) {
    CLEAVE_TRY(output, OutputFile::open(*request.output, progress.stopToken()));
  }
  const ModelFiles modelFiles(request);
  progress.report("run");
  Follower follower(request);
  const auto follow = [&](const launch::RankEvent& event) {
    follower.observe(event);
    observer(event);
  };
  if (request.attended) {
    CLEAVE_TRY(report.outcome, attendRanks(request, files, follow, progress));
  } else {
    CLEAVE_TRY(report.outcome, launchRanks(*request.plan, report.backend, files, request, follow, progress));
  }
  report.steps = follower.steps();
  if (!report.outcome.succeeded) return report;
  follower.tell(report);
  if (request.step) CLEAVE_TRY_VOID(takeGenerated(report, request, files, follower.generated()));
  UnsplitRuns unsplit(request, report, model, modelFiles, files, folder, progress);
  CLEAVE_TRY(const fs::path expected, expectedFile(report, request, unsplit));
  const auto measure = [&](int again) { return unsplit.ruler(report.notes, again); };
  if (!expected.empty())
    CLEAVE_TRY_VOID(compareWith(expected, report, request, files, request.training.steps, measure, progress));
  // Last: whatever `output` is a second name of has been read by now.
  if (output) {
    CLEAVE_TRY(const auto written, RandomAccessFile::open(files.output));
    CLEAVE_TRY_VOID(copyInto(*output, written));
    CLEAVE_TRY_VOID(output->finish());
  }
  report.verdict = verdictOf(report);
  if (request.plan->seal == plan::Seal::Broken) refuseToPass(report);
  return report;
}

}  // namespace cleave::pipeline
