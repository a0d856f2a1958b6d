#include "pipeline/report/report.h"

#include "base/json.h"
#include "pipeline/memory/predicted_memory.h"
#include "plan/build/node_costs.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace cleave::pipeline {
namespace {

nlohmann::ordered_json jsonOf(const OutputDifference& output) {
  nlohmann::ordered_json json{{"name", output.name},
                              {"rank", output.rank},
                              {"max_abs_diff", output.maxAbs},
                              {"max_rel_diff", output.maxRel},
                              {"of_tolerance", output.ofTolerance},
                              {"outside", output.outside},
                              {"not_a_number", output.notANumber},
                              {"positions", output.positions},
                              {"padding", output.padding},
                              {"undetermined", output.undetermined},
                              {"within", output.within()},
                              {"unit", output.rounding.unit},
                              {"ruler", nullptr}};
  if (output.rounding.moves) json["ruler"] = output.rounding.moves->ruler;
  if (output.jumped > 0) json["jumped"] = output.jumped;
  if (output.place.empty() && output.ofTolerance == 0) return json;
  json["farthest"] = {
      {"place", output.place}, {"actual", output.actual}, {"expected", output.expected}, {"allowed", output.allowed}};
  return json;
}

nlohmann::ordered_json jsonOf(const protocol::RankResult& result, std::size_t rank) {
  nlohmann::ordered_json entry{
      {"rank", rank},
      {"bytes_read", result.bytesRead},
      {"shard_bytes", result.shardBytes},
      {"largest_parameter_allocation", result.largestParameterAllocation},
      {"peak_memory", result.peak.program},
      {"peak_rss", result.peak.process},
      {"allocator_rounding", result.peak.rounding},
      {"collectives",
       {{"all_reduce", result.allReduce}, {"all_gather", result.allGather}, {"reduce_scatter", result.reduceScatter}}},
      {"step_us", result.stepMicroseconds}};
  if (result.hasLoss) entry["loss"] = result.loss;
  return entry;
}

nlohmann::ordered_json jsonOf(const program::Training& training, const std::vector<protocol::TrainingStep>& steps) {
  nlohmann::ordered_json json{{"optimizer", program::toText(training.optimizer)},
                              {"learning_rate", training.learningRate},
                              {"weight_decay", training.weightDecay},
                              {"clip_norm", nullptr},
                              {"accumulate", training.accumulate},
                              {"steps", nlohmann::ordered_json::array()}};
  if (training.clipNorm) json["clip_norm"] = *training.clipNorm;
  for (const protocol::TrainingStep& step : steps) {
    nlohmann::ordered_json entry{{"loss", step.loss}, {"step_us", step.microseconds}};
    if (step.hasNorm) entry["gradient_norm"] = step.gradientNorm;
    json["steps"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::ordered_json jsonOf(const GenerationReport& report) {
  using Json = nlohmann::ordered_json;
  Json cache{{"positions", report.cachePositions},
             {"heads", report.cacheHeads},
             {"predicted_bytes", report.predictedCacheBytes},
             {"measured_bytes", report.cacheBytes}};
  return {{"prompt_tokens", report.promptLength},
          {"new_tokens", report.tokens.length - report.promptLength},
          {"asked_tokens", report.asked.tokens},
          {"end_tokens", report.asked.endTokens},
          {"prefill_us", report.figures.prefillMicroseconds},
          {"decode_steps", report.figures.steps},
          {"decode_us", report.figures.decodeMicroseconds},
          {"tokens_per_second", report.tokensPerSecond()},
          {"first_difference", report.firstDifference.empty() ? Json() : Json(report.firstDifference)},
          {"kv_cache", std::move(cache)}};
}

/// One list per row.
nlohmann::ordered_json jsonOf(const TokenRows& tokens) {
  auto json = nlohmann::ordered_json::array();
  for (std::int64_t row = 0; row < tokens.rows; ++row) {
    auto& ids = json.emplace_back(nlohmann::ordered_json::array());
    for (std::int64_t i = 0; i < tokens.length; ++i) ids.push_back(tokens.at(row, i));
  }
  return json;
}

nlohmann::ordered_json jsonOf(const ReplicaSum& sum) {
  nlohmann::ordered_json json{{"all_reduces", sum.collectives},
                              {"bytes", sum.bytes},
                              {"predicted_us", sum.predictedSeconds * 1e6},
                              {"us", nullptr}};
  if (sum.tookSeconds) json["us"] = *sum.tookSeconds * 1e6;
  return json;
}

nlohmann::ordered_json jsonOf(const MemoryLine& line) {
  nlohmann::ordered_json json{{"name", line.name}, {"measured", line.measured}, {"predicted", nullptr}};
  if (line.predicted) json["predicted"] = *line.predicted;
  return json;
}

nlohmann::ordered_json jsonOf(const MemoryComparison& memory, const plan::Plan& plan, int rank) {
  nlohmann::ordered_json json{{"rank", rank},
                              {"peak", jsonOf(memory.peak)},
                              {"parts", nlohmann::ordered_json::array()},
                              {"farthest_off", nlohmann::ordered_json::array()}};
  for (const MemoryLine& line : memory.lines) json["parts"].push_back(jsonOf(line));
  for (const NodeDifference& node : memory.largest) {
    json["farthest_off"].push_back({{"value", plan.graph->value(plan.graph->node(node.node).results[0]).name},
                                    {"measured", node.measured},
                                    {"predicted", node.predicted}});
  }
  return json;
}

nlohmann::ordered_json jsonOf(const Timeline& timeline, const plan::Plan& plan, const ReplicaSum& replicas) {
  constexpr std::size_t kMostOperators = 100;
  const auto microseconds = [](std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; };
  nlohmann::ordered_json json{
      {"step_us", microseconds(timeline.totalNs)},
      {"predicted_step_us", static_cast<double>(plan.cost.femtoseconds()) / 1e9 + replicas.predictedSeconds * 1e6},
      {"device_profile", plan.spec.cost.profile.name},
      {"slowest_rank", nullptr},
      {"skew_us", microseconds(timeline.skewNs)},
      {"one_clock", timeline.isOneClock},
      {"ranks", nlohmann::ordered_json::array()},
      {"operators", nlohmann::ordered_json::array()}};
  if (const auto slowest = timeline.slowest()) json["slowest_rank"] = *slowest;
  for (const LaneSum& sum : timeline.sums) {
    json["ranks"].push_back({{"compute_us", microseconds(sum.compute)},
                             {"collective_us", microseconds(sum.collective)},
                             {"waiting_us", microseconds(sum.waiting)},
                             {"total_us", microseconds(sum.total)},
                             {"made_others_wait_us", microseconds(sum.madeOthersWait)}});
  }
  const auto costs = plan::costByNode(plan);
  for (const OperatorTime& time : timeline.operators(plan)) {
    if (json["operators"].size() == kMostOperators) break;
    const graph::Node& node = plan.graph->node(time.node);
    json["operators"].push_back({{"value", node.results.empty() ? "" : plan.graph->value(node.results[0]).name},
                                 {"op", plan.graph->opName(node)},
                                 {"scope", plan.graph->scope(node.scope).path},
                                 {"compute_us", microseconds(time.computeNs)},
                                 {"predicted_us", static_cast<double>(costs[time.node.index()].computeFs) / 1e9}});
  }
  return json;
}

/// The properties of a plan that distinguish runs.
nlohmann::ordered_json planJson(const plan::Plan& plan) {
  const plan::ModelInfo& model = plan.model;
  return {{"model", model.source},
          {"architecture", model.architecture},
          {"dtype", graph::toText(model.dtype)},
          {"batch", model.batch},
          {"sequence", model.sequence},
          {"ranks", plan.spec.ranks},
          {"engine", solve::toText(plan.spec.engine)},
          {"menu", rules::toText(plan.spec.candidates())},
          {"sequence_parallel", rules::toText(plan.spec.sequenceParallel)},
          {"device_profile", plan.spec.cost.profile.name},
          {"demands", spec::demandTexts(plan.spec)},
          {"collectives", plan.collectives.size()}};
}

}  // namespace

std::string toleranceText(const RunReport& report) {
  if (report.rtol || report.atol)
    return fmt::format("tolerance {} + {} × the expected value", report.atol.value_or(0), report.rtol.value_or(0));
  const auto unit = [](double value) {
    return value > 0 && std::log2(value) == std::round(std::log2(value)) ? fmt::format("2^{:.0f}", std::log2(value))
                                                                         : fmt::format("{:.3g}", value);
  };
  double most = 0;
  const OutputDifference* farthest = nullptr;
  for (const OutputDifference& output : report.outputs) {
    most = std::max(most, output.rounding.unit);
    if (!farthest || output.ofTolerance > farthest->ofTolerance) farthest = &output;
  }
  if (report.generation || !farthest) return {};
  std::string text = fmt::format("tolerance: {} of an element and of its tensor's root mean square ({})", unit(most),
                                 report.rulerParts > 0 || most < unitWithoutRuler(report.coarsest)
                                     ? fmt::format("rounding in {}", graph::toText(report.coarsest))
                                     : "no ruler");
  if (report.rulerParts == 0) return text;
  text += fmt::format(", plus {:.2g} × the ruler: the change of the unsplit run with its sums in {} parts",
                      rulersFor(farthest->rounding.elements), report.rulerParts);
  if (farthest->rounding.moves) text += fmt::format(" ({}: {:.3g})", farthest->name, farthest->rounding.moves->ruler);
  return text;
}

std::string toJson(const RunReport& report, const plan::Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["schema"] = "cleave.run/1";
  json["passed"] = report.verdict == RunVerdict::NotChecked ? Json() : Json(report.verdict == RunVerdict::Passed);
  json["plan"] = planJson(plan);
  json["plan"]["predicted_memory"] =
      report.generation ? report.generation->predictedMemory : predictedMemory(plan, report.workload());
  json["mesh"] = {{"dp", report.mesh.dp}, {"tp", report.mesh.tp}};
  json["world_size"] = report.mesh.ranks();
  if (report.mesh.isReplicated()) json["batch_of_replica"] = plan.model.batch;
  json["backend"] = launch::toText(report.backend);
  if (!report.precision.empty()) json["precision"] = report.precision;
  json["compared_with"] = report.comparedWith.empty() ? Json() : Json(report.comparedWith);
  json["rtol"] = report.rtol ? nlohmann::ordered_json(*report.rtol) : nlohmann::ordered_json();
  json["atol"] = report.atol ? nlohmann::ordered_json(*report.atol) : nlohmann::ordered_json();
  json["coarsest_dtype"] = graph::toText(report.coarsest);
  json["ruler_parts"] = report.rulerParts;
  if (report.training.isAsked()) json["training"] = jsonOf(report.training, report.steps);
  if (report.generation) {
    json["tokens"] = jsonOf(report.generation->tokens);
    json["generation"] = jsonOf(*report.generation);
  }
  if (!report.replicaSum.isEmpty()) json["replica_sum"] = jsonOf(report.replicaSum);
  json["outputs"] = Json::array();
  for (const OutputDifference& output : report.outputs) json["outputs"].push_back(jsonOf(output));
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < report.outcome.results.size(); ++rank) {
    if (const auto& result = report.outcome.results[rank]) json["ranks"].push_back(jsonOf(*result, rank));
    if (rank < report.storages.size() && !json["ranks"].empty())
      json["ranks"].back()["storages"] = report.storages[rank];
  }
  if (!report.timeline.isEmpty()) json["time"] = jsonOf(report.timeline, plan, report.replicaSum);
  if (!report.memory.empty()) {
    Json& memory = json["memory"] = Json::array();
    for (const auto& [rank, comparison] : report.memory) memory.push_back(jsonOf(comparison, plan, rank));
  }
  json["violations"] = report.violations;
  json["notes"] = report.notes;
  json["warnings"] = report.warnings;
  json["first_failure"] = nullptr;
  if (const auto& failure = report.outcome.firstFailure) {
    json["first_failure"] = {{"rank", failure->rank},
                             {"code", exitCode(failure->code)},
                             {"what", failure->what},
                             {"last_words", failure->lastMessage}};
  }
  return jsonText(json, 1);
}

}  // namespace cleave::pipeline
