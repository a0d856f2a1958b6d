#include "cli/summary.h"

#include "base/json.h"
#include "base/quantities.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/report/generation_text.h"
#include "plan/text/choice_text.h"
#include "plan/text/folded_layers.h"
#include "plan/text/headline.h"
#include "plan/text/shares_text.h"
#include "solve/cost/memory_parts.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace cleave::cli {
namespace {

/// The summary leaves out replicated work below this share of a rank's time; the JSON has all.
constexpr double kLeastShareNamed = 0.05;

std::string collectivesText(const plan::Plan& plan) {
  std::map<std::string_view, std::pair<int, std::int64_t>> byKind;
  for (const plan::CollectivePlan& collective : plan.collectives) {
    auto& [count, bytes] = byKind[rules::toText(collective.kind)];
    ++count;
    bytes += collective.bytes;
  }
  std::string text;
  for (const auto& [kind, sum] : byKind)
    text += fmt::format("{}{} × {} ({})", text.empty() ? "" : ", ", sum.first, kind, bytesText(sum.second));
  return text.empty() ? "0" : text;
}

/// " (largest at [0, 3, 17]: 12.3456, expected 12.3462)"; empty if nothing differs.
std::string placeText(const pipeline::OutputDifference& output) {
  if (output.maxAbs == 0 || output.place.empty()) return {};
  return fmt::format(" (largest at [{}]: {:.6g}, expected {:.6g})", fmt::join(output.place, ", "), output.actual,
                     output.expected);
}

std::string outputLine(const pipeline::OutputDifference& output, const std::string& comparedWith) {
  std::string text = output.name;
  if (output.rank > 0) text += fmt::format(" of rank {}", output.rank);
  if (output.notANumber > 0) {
    text +=
        fmt::format(": {} NaN, here or in {}", counted(output.notANumber, "element is", "elements are"), comparedWith);
    if (output.outside > 0) text += fmt::format("; {} outside the tolerance", counted(output.outside, "element"));
    return text + ": DIFFERENT\n";
  }
  text +=
      fmt::format(": largest difference {:.3g} from {}{}, {}: ", output.maxAbs, comparedWith, placeText(output),
                  std::isfinite(output.ofTolerance) ? fmt::format("{:.3g} % of the tolerance", 100 * output.ofTolerance)
                                                    : std::string("outside every tolerance"));
  if (output.within()) return text + "equal\n";
  text += "DIFFERENT";
  if (output.outside > 0) text += fmt::format(", {} outside the tolerance", counted(output.outside, "element"));
  return text + "\n";
}

/// "4 ranks (dp=2,tp=2)"
std::string ranksText(const program::Mesh& mesh) {
  const std::string ranks = counted(mesh.ranks(), "rank");
  return mesh.isReplicated() ? fmt::format("{} ({})", ranks, program::toText(mesh)) : ranks;
}

std::string verdictLine(const pipeline::RunReport& report, const plan::Plan& plan) {
  std::string done;
  if (report.spec.training.isAsked()) done = counted(report.spec.training.steps, "training step") + " of ";
  if (const auto& made = report.generation)
    done = counted((made->tokens.length - made->promptLength) * made->tokens.rows, "new token") + " of ";
  const std::string what = fmt::format("{}{} on {} over {}", done, plan.model.architecture, ranksText(report.mesh),
                                       launch::toText(report.spec.backend));
  switch (report.verdict) {
    case pipeline::RunVerdict::Passed: return fmt::format("passed: {}\n", what);
    case pipeline::RunVerdict::NotChecked:
      return fmt::format("not checked: {} ran to the end; its outputs were not compared\n", what);
    case pipeline::RunVerdict::Failed: break;
  }
  return fmt::format("FAILED: {}\n", what);
}

/// Work that every rank repeats: attention that cannot be split, then the slowest.
std::vector<plan::ReplicatedWork> worthNaming(const plan::Shares& shares) {
  std::vector<plan::ReplicatedWork> named;
  for (const plan::ReplicatedWork* work : plan::indivisibleHeads(shares)) named.push_back(*work);
  const double least = kLeastShareNamed * static_cast<double>(shares.computeFs);
  for (const plan::ReplicatedWork& work : shares.replicated) {
    const bool isNew =
        std::none_of(named.begin(), named.end(), [&](const auto& other) { return other.first == work.first; });
    if (isNew && static_cast<double>(work.femtoseconds) >= least) named.push_back(work);
  }
  return named;
}

/// "batch 2, sequence 16, "; sizes that the inputs do not have are left out.
std::string inputSizes(const plan::ModelInfo& model) {
  std::string text;
  if (model.batch > 0) text += fmt::format("batch {}, ", model.batch);
  if (model.sequence > 0) text += fmt::format("sequence {}, ", model.sequence);
  return text;
}

bool mayRedistribute(const plan::ReplicationReason& replication) {
  return plan::causeOf(replication) == plan::ReplicatedCause::CannotAsRead;
}

}  // namespace

std::string planSummary(const plan::Plan& plan) {
  std::string text =
      fmt::format("{} ({}), {}, {}{}\n\n", plan.model.architecture, plan.model.source, counted(plan.spec.ranks, "rank"),
                  inputSizes(plan.model), graph::toText(plan.model.dtype));
  const std::vector<plan::FoldedLayer> folded = plan::foldedLayers(plan);
  std::size_t width = 0, strategyWidth = 0;
  for (const plan::FoldedLayer& layer : folded) {
    width = std::max(width, layer.name.size());
    strategyWidth = std::max(strategyWidth, layer.strategy.size());
  }
  for (const plan::FoldedLayer& layer : folded)
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", layer.name, width, layer.strategy, strategyWidth, layer.reason);
  text += fmt::format("\n{}\n", plan::toText(plan.shares));
  if (const std::string whole = plan::replicatedText(plan::replicatedLayers(plan)); !whole.empty())
    text += whole + ".\n";
  if (const std::string largest = plan::largestWholeText(plan.shares); !largest.empty()) text += largest + "\n";
  bool asks = std::any_of(plan.layers.begin(), plan.layers.end(),
                          [](const auto& layer) { return mayRedistribute(layer.replication); });
  for (const plan::ReplicatedWork& work : worthNaming(plan.shares)) {
    text += fmt::format("  {}\n", plan::toText(work));
    asks = asks || mayRedistribute(work.why);
  }
  if (asks)
    text +=
        "Redistribution gathers or splits a value after it is computed. Allow it with --redistribute NAME, or '*'.\n";
  text += fmt::format("collectives of a forward pass: {}\n", collectivesText(plan));
  text += fmt::format("per rank: {} ({} of the parameters are replicated)\n", solve::memoryText(plan.cost),
                      bytesText(plan.memory.replicatedParameters));
  text += fmt::format("predicted: {}\n", plan::predictedText(plan));
  if (const std::string idle = plan::idleSequenceText(plan); !idle.empty()) text += idle + "\n";
  if (const std::string words = plan::choiceInWords(plan); !words.empty()) text += fmt::format("chosen: {}\n", words);
  const std::string proof = plan::proofInWords(plan);
  text += fmt::format("search ({}): {}, {}, {} in {:.1f} ms{}{}\n", solve::toText(plan.spec.engine),
                      counted(static_cast<std::int64_t>(plan.search.tries), "try", "tries"),
                      counted(static_cast<std::int64_t>(plan.search.conflicts), "conflict"),
                      counted(static_cast<std::int64_t>(plan.search.backtracks), "backtrack"), plan.timings.solveMs,
                      proof.empty() ? "" : "; ", proof);
  return text;
}

namespace {

/// The first steps and the last, one line each.
std::string stepsText(const pipeline::RunReport& report) {
  constexpr std::int64_t kFirst = 8;
  std::string text;
  const auto count = std::ssize(report.steps);
  for (const protocol::TrainingStep& step : report.steps) {
    if (step.step > kFirst && step.step < count) continue;
    if (step.step == count && count > kFirst + 1) text += "…\n";
    text += fmt::format("step {}: loss {:.6f}", step.step, step.loss);
    if (step.hasNorm) text += fmt::format(", gradient norm {:.4g}", step.gradientNorm);
    text += fmt::format(", {:.1f} ms\n", static_cast<double>(step.microseconds) / 1000);
  }
  return text;
}

/// Parameters share one line: that of the one with the largest difference.
std::string outputLines(const pipeline::RunReport& report) {
  std::string text;
  const pipeline::OutputDifference* farthest = nullptr;
  std::int64_t parameters = 0, undetermined = 0;  // of rank 0; other ranks repeat them
  for (const auto& output : report.outputs) {
    if (!output.name.starts_with("param.")) {
      text += outputLine(output, report.comparedWith);
      continue;
    }
    parameters += output.rank == 0;
    undetermined += output.rank == 0 ? output.undetermined : 0;
    if (!farthest || output.ofTolerance > farthest->ofTolerance) farthest = &output;
  }
  if (!farthest) return text;
  text += counted(parameters, "parameter") + " compared; worst: " + outputLine(*farthest, report.comparedWith);
  if (undetermined == 0) return text;
  return text +
         fmt::format(
             "{} {} a gradient as small as rounding, which AdamW scales up; the tolerance is larger by {:.3g} there\n",
             counted(undetermined, "element"), undetermined == 1 ? "has" : "have",
             2 * report.spec.training.learningRate * static_cast<double>(report.spec.training.steps));
}

std::string closingText(const pipeline::RunReport& report, const plan::Plan& plan) {
  std::string text;
  for (const std::string& violation : report.violations) text += violation + "\n";
  for (const std::string& note : report.notes) text += note + "\n";
  return text + verdictLine(report, plan);
}

}  // namespace

std::string runSummary(const pipeline::RunReport& report, const plan::Plan& plan) {
  std::string text;
  for (std::size_t rank = 0; rank < report.outcome.results.size(); ++rank) {
    const auto& result = report.outcome.results[rank];
    if (!result) continue;
    text += fmt::format(
        "rank {}: {} of weights read, peak memory {} in the program ({} predicted){} and {} in the process, {}, {}, "
        "{}{}\n",
        rank, bytesText(result->bytesRead), bytesText(result->peak.program),
        bytesText(report.generation ? report.generation->predictedMemory
                                    : pipeline::predictedMemory(plan, report.workload())),
        result->peak.rounding > 0 ? fmt::format(", {} of allocator rounding", bytesText(result->peak.rounding)) : "",
        bytesText(result->peak.process), counted(result->allReduce, "all-reduce"),
        counted(result->allGather, "all-gather"), counted(result->reduceScatter, "reduce-scatter"),
        result->stepMicroseconds > 0
            ? fmt::format(", {:.1f} ms per step", static_cast<double>(result->stepMicroseconds) / 1000)
            : "");  // a generation of one token has no decode step
  }
  if (!report.precision.empty()) text += fmt::format("float32 products are {}\n", report.precision);
  text += pipeline::timesText(report.timeline, plan);
  for (const auto& [rank, memory] : report.memory) text += pipeline::memoryText(memory, plan, rank);
  if (report.mesh.isReplicated() && !text.empty()) {
    text += fmt::format("each of {} replicas computed {} of {} per batch\n", report.mesh.dp, plan.model.batch,
                        counted(report.mesh.dp * plan.model.batch, "row"));
  }
  if (const std::string sum = pipeline::toText(report.replicaSum, plan, report.mesh); !sum.empty()) text += sum + "\n";
  const bool isForwardPass = !report.spec.training.isAsked() && !report.generation;
  const std::string notKept = isForwardPass ? plan::notKeptText(plan) : std::string();
  if (!text.empty() && !notKept.empty()) text += notKept + "\n";
  if (report.generation) return text + pipeline::generationText(report) + closingText(report, plan);
  if (report.spec.training.isAsked()) {
    text += stepsText(report);
  } else if (!report.outcome.results.empty() && report.outcome.results[0] && report.outcome.results[0]->hasLoss) {
    text += fmt::format("loss {:.6f}\n", report.outcome.results[0]->loss);
  }
  text += outputLines(report);
  if (const std::string allowed = pipeline::toleranceText(report); !report.outputs.empty() && !allowed.empty())
    text += allowed + "\n";
  return text + closingText(report, plan);
}

std::string noSolutionJson(const pipeline::Solved& solved, const plan::ModelInfo& model) {
  nlohmann::ordered_json json;
  json["schema"] = "cleave.plan/1";
  json["solved"] = false;
  json["outcome"] = solved.result.isProved ? "none" : "not_known";
  json["model"] = {{"source", model.source}, {"architecture", model.architecture}, {"model_type", model.modelType}};
  json["ranks"] = solved.problem->context.worldSize;
  json["engine"] = solve::toText(solved.result.engine);
  json["asked_engine"] = solve::toText(solved.spec.engine);
  json["search"] = {{"tries", solved.result.stats.tries},
                    {"conflicts", solved.result.stats.conflicts},
                    {"backtracks", solved.result.stats.backtracks},
                    {"events", solved.result.stats.events}};
  json["timings_ms"] = {{"solve", solved.solveMs}};
  auto causes = nlohmann::ordered_json::array();
  for (const solve::ConflictRecord& cause : solved.result.causes)
    causes.push_back({{"reason", cause.reason}, {"pins", cause.pins}});
  json["causes"] = std::move(causes);
  return jsonText(json, 1);
}

}  // namespace cleave::cli
