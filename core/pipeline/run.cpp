#include "pipeline/compare.h"
#include "pipeline/pipeline.h"

#include "formats/safetensors.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

#include <unistd.h>

namespace cleave::pipeline {
namespace {

/// A folder of its own under the system's temporary folder, gone with the object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    std::error_code error;
    std::string pattern = (fs::temp_directory_path(error) / "cleave-run-XXXXXX").string();
    if (error || !::mkdtemp(pattern.data())) return fail(ErrorCode::Environment, "No temporary folder can be made ({}).", pattern);
    TemporaryFolder folder;
    folder.m_path = pattern;
    return folder;
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : m_path(std::exchange(other.m_path, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(m_path, other.m_path);
    return *this;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!m_path.empty()) fs::remove_all(m_path, ignored);
  }
  fs::path operator/(const char* name) const { return m_path / name; }

 private:
  TemporaryFolder() = default;
  fs::path m_path;
};

Result<fs::path> rankProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {self.parent_path(), self.parent_path() / ".." / "bin"}) {
    if (fs::exists(folder / "cleave-rank", error)) return folder / "cleave-rank";
  }
  return fail(ErrorCode::Environment, "cleave-rank is not beside {}: the installation is incomplete.", self.string());
}

struct RankFiles {
  fs::path plan, output;
  std::optional<fs::path> input;
};

Result<run::RunOutcome> launchRanks(const plan::Plan& plan, run::Backend backend, const RankFiles& files, const RunRequest& request,
                                    const run::Observer& observer, const Progress& progress) {
  CLEAVE_TRY_VOID(writeFileAtomically(files.plan, plan::toJson(plan)));
  run::LaunchRequest launch;
  CLEAVE_TRY(launch.rankProgram, rankProgram());
  launch.planFile = files.plan;
  launch.ranks = plan.ranks;
  launch.backend = backend;
  launch.rankArguments = {"--output", files.output.string()};
  if (files.input) launch.rankArguments.insert(launch.rankArguments.end(), {"--input", files.input->string()});
  if (request.skipWeights) launch.rankArguments.push_back("--skip-weights");
  if (request.initMissing) launch.rankArguments.push_back("--init-missing");
  return run::launch(launch, observer, progress);
}

/// The same model on one rank: what the split run is compared with.
Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const plan::Plan& split, const Progress& progress) {
  CLEAVE_TRY(const auto model, openModel(split.model.source, captureOptionsOf(split.model), progress));
  SolveOptions options;
  options.ranks = 1;
  options.seed = split.seed;
  options.record = false;
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved);
}

std::string counted(std::int64_t executed, std::int64_t planned, std::string_view kind, std::size_t rank) {
  return fmt::format("rank {} executed {} {} collectives, but the plan has {}", rank, executed, kind, planned);
}

/// Executed collectives must equal the plan's on every rank.
std::vector<std::string> collectiveMismatches(const plan::Plan& plan, const run::RunOutcome& outcome) {
  std::int64_t planned[3] = {};
  for (const plan::CollectivePlan& collective : plan.collectives) ++planned[static_cast<std::size_t>(collective.kind)];
  std::vector<std::string> mismatches;
  for (std::size_t rank = 0; rank < outcome.results.size(); ++rank) {
    if (!outcome.results[rank]) continue;
    const run::RankResult& result = *outcome.results[rank];
    const std::int64_t executed[3] = {result.allReduce, result.allGather, result.reduceScatter};
    for (const auto kind : {rules::CollectiveKind::AllReduce, rules::CollectiveKind::AllGather, rules::CollectiveKind::ReduceScatter}) {
      const auto k = static_cast<std::size_t>(kind);
      if (executed[k] != planned[k]) mismatches.push_back(counted(executed[k], planned[k], rules::toText(kind), rank));
    }
  }
  return mismatches;
}

Result<void> compareOutputs(RunReport& report, const RunRequest& request, const RankFiles& files, const TemporaryFolder& folder,
                            const Progress& progress) {
  fs::path expected;
  if (request.expect) {
    expected = *request.expect;
    report.comparedWith = expected.filename().string();
  } else if (request.compareUnsplit) {
    progress.report("unsplit run");
    CLEAVE_TRY(const auto plan, unsplitPlan(*request.plan, progress));
    const RankFiles unsplit{folder / "unsplit-plan.json", folder / "unsplit.safetensors", files.input};
    CLEAVE_TRY(const auto outcome, launchRanks(*plan, run::Backend::Gloo, unsplit, request, [](const run::RankEvent&) {}, progress));
    if (!outcome.succeeded) {
      return fail(ErrorCode::RankFailed, "The unsplit run that the ranks are compared with failed: {}.",
                  outcome.firstFailure ? outcome.firstFailure->what + ": " + outcome.firstFailure->lastWords : "no reason given");
    }
    expected = unsplit.output;
    report.comparedWith = "an unsplit run";
  } else {
    return {};
  }
  progress.report("compare");
  CLEAVE_TRY(report.outputs, compareTensors(files.output, expected, request.rtol, request.atol));
  return {};
}

}  // namespace

torch_capture::CaptureOptions captureOptionsOf(const plan::ModelInfo& info) {
  torch_capture::CaptureOptions options;
  options.batch = info.batch;
  options.sequence = info.sequence;
  options.dtype = info.dtype;
  options.mask = info.hasMask;
  options.loss = info.hasLoss;
  options.logitsToKeep = info.logitsToKeep;
  return options;
}

Result<InputShape> readInputShape(const fs::path& file) {
  CLEAVE_TRY(const auto header, formats::readSafetensorsHeader(file));
  const auto ids = header.tensors.find("input_ids");
  if (ids == header.tensors.end()) return fail(ErrorCode::BadInput, "{} has no tensor input_ids.", file.string());
  const graph::Shape& shape = ids->second.type.shape;
  if (shape.size() != 2) return fail(ErrorCode::BadInput, "{}: input_ids has shape {}, but must be [batch, sequence].", file.string(), graph::toText(shape));
  return InputShape{shape[0], shape[1], header.tensors.contains("attention_mask"), header.tensors.contains("labels")};
}

double defaultTolerance(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::BFloat16: return 6e-2;
    case graph::DType::Float16: return 1e-2;
    case graph::DType::Float64: return 1e-8;
    default: return 1e-4;
  }
}

Result<RunReport> runPlan(const RunRequest& request, const run::Observer& observer, const Progress& progress) {
  RunReport report;
  std::string why;
  CLEAVE_TRY(report.backend, run::resolveBackend(request.backend, request.plan->ranks, &why));
  if (!why.empty()) report.notes.push_back(why);
  CLEAVE_TRY(const auto folder, TemporaryFolder::make());
  RankFiles files{folder / "plan.json", request.output.value_or(folder / "outputs.safetensors"), request.input};
  if (!files.input && request.expect) files.input = request.expect;
  progress.report("run");
  CLEAVE_TRY(report.outcome, launchRanks(*request.plan, report.backend, files, request, observer, progress));
  if (!report.outcome.succeeded) return report;
  CLEAVE_TRY_VOID(compareOutputs(report, request, files, folder, progress));
  const auto mismatches = collectiveMismatches(*request.plan, report.outcome);
  report.notes.insert(report.notes.end(), mismatches.begin(), mismatches.end());
  report.passed = mismatches.empty();
  for (const OutputDifference& output : report.outputs) report.passed = report.passed && output.within;
  return report;
}

std::string toJson(const RunReport& report, const plan::Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["schema"] = "cleave.run/1";
  json["passed"] = report.passed;
  json["plan"] = {{"model", plan.model.source}, {"ranks", plan.ranks}, {"engine", solve::toText(plan.engine)}, {"collectives", plan.collectives.size()}};
  json["backend"] = run::toText(report.backend);
  json["compared_with"] = report.comparedWith;
  Json outputs = Json::array();
  for (const OutputDifference& output : report.outputs) {
    outputs.push_back({{"name", output.name}, {"max_abs_diff", output.maxAbs}, {"max_rel_diff", output.maxRel}, {"within", output.within}});
  }
  json["outputs"] = std::move(outputs);
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < report.outcome.results.size(); ++rank) {
    if (!report.outcome.results[rank]) continue;
    const run::RankResult& result = *report.outcome.results[rank];
    Json entry{{"rank", rank},
               {"bytes_read", result.bytesRead},
               {"shard_bytes", result.shardBytes},
               {"largest_parameter_allocation", result.largestParameterAllocation},
               {"peak_memory", result.peakMemory},
               {"peak_rss", result.peakRss},
               {"collectives", {{"all_reduce", result.allReduce}, {"all_gather", result.allGather}, {"reduce_scatter", result.reduceScatter}}},
               {"step_us", result.stepMicroseconds}};
    if (result.hasLoss) entry["loss"] = result.loss;
    ranks.push_back(std::move(entry));
  }
  json["ranks"] = std::move(ranks);
  json["notes"] = report.notes;
  if (report.outcome.firstFailure) {
    const run::RankExit& failure = *report.outcome.firstFailure;
    json["first_failure"] = {{"rank", failure.rank}, {"what", failure.what}, {"last_words", failure.lastWords}};
  } else {
    json["first_failure"] = nullptr;
  }
  return json.dump(1);
}

}  // namespace cleave::pipeline
