#include "pipeline/report/report.h"

#include "base/json_tree.h"
#include "base/schema_writer.h"
#include "pipeline/memory/predicted_memory.h"
#include "pipeline/report/report_schema.h"
#include "pipeline/settings/plan_settings.h"
#include "pipeline/settings/run_settings.h"
#include "plan/build/node_costs.h"

#include <cmath>

namespace cleave::pipeline {
namespace {

PlanOfReport planOf(const plan::Plan& plan, const RunReport& report) {
  const plan::ModelInfo& model = plan.model;
  return {.model = model.source,
          .architecture = model.architecture,
          .dtype = std::string(graph::toText(model.dtype)),
          .engine = std::string(solve::toText(plan.spec.engine)),
          .menu = std::string(rules::toText(plan.spec.candidates())),
          .sequenceParallel = std::string(rules::toText(plan.spec.sequenceParallel)),
          .deviceProfile = plan.spec.cost.profile.name,
          .demands = spec::demandTexts(plan.spec),
          .batch = model.batch,
          .sequence = model.sequence,
          .ranks = plan.spec.ranks,
          .collectives = std::ssize(plan.collectives),
          .predictedMemory =
              report.generation ? report.generation->predictedMemory : predictedMemory(plan, report.workload()),
          .arguments = flagsOf(PlanSettings::of({}, model.input, plan.spec))};
}

std::vector<RankEntry> rankEntries(const RunReport& report) {
  std::vector<RankEntry> entries;
  for (std::size_t rank = 0; rank < report.outcome.results.size(); ++rank) {
    if (const auto& result = report.outcome.results[rank]) entries.push_back({static_cast<int>(rank), *result, {}});
    if (rank < report.storages.size() && !entries.empty()) entries.back().storages = report.storages[rank];
  }
  return entries;
}

std::vector<MemoryEntry> memoryEntries(const RunReport& report, const plan::Plan& plan) {
  std::vector<MemoryEntry> entries;
  for (const auto& [rank, comparison] : report.memory) {
    MemoryEntry& entry = entries.emplace_back(MemoryEntry{rank, comparison, {}});
    for (const NodeDifference& node : comparison.largest) {
      entry.largest.push_back(
          {plan.graph->value(plan.graph->node(node.node).results[0]).name, node.measured, node.predicted});
    }
  }
  return entries;
}

std::vector<OperatorEntry> operatorEntries(const Timeline& timeline, const plan::Plan& plan) {
  constexpr std::size_t kMostOperators = 100;
  std::vector<OperatorEntry> entries;
  if (timeline.isEmpty()) return entries;
  const auto costs = plan::costByNode(plan);
  for (const OperatorTime& time : timeline.operators(plan)) {
    if (entries.size() == kMostOperators) break;
    const graph::Node& node = plan.graph->node(time.node);
    entries.push_back({.value = node.results.empty() ? "" : plan.graph->value(node.results[0]).name,
                       .op = std::string(plan.graph->opName(node)),
                       .scope = plan.graph->scope(node.scope).path,
                       .computeNs = time.computeNs,
                       .predictedUs = static_cast<double>(costs[time.node.index()].computeFs) / 1e9});
  }
  return entries;
}

}  // namespace

std::string toleranceText(const RunReport& report) {
  if (report.spec.rtol || report.spec.atol)
    return fmt::format("tolerance {} + {} × the expected value", report.spec.atol.value_or(0),
                       report.spec.rtol.value_or(0));
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
  ReportDocument<const RunReport> document{
      .report = report,
      .plan = planOf(plan, report),
      .predictedStepUs = static_cast<double>(plan::stepTime(plan, report.spec.training.isAsked())) / 1e9 +
                         report.replicaSum.predictedSeconds * 1e6,
      .ranks = rankEntries(report),
      .memory = memoryEntries(report, plan),
      .operators = operatorEntries(report.timeline, plan),
      .mode = std::string(spec::toText(report.spec.mode())),
      .arguments = settings::argumentsOf(runSettings(report.spec.mode()), report.spec)};
  JsonTree json;
  json.beginObject();
  schema::Writer v(json);
  fields(v, document);
  json.endObject();
  return jsonText(json.root(), 1);
}

std::vector<schema::Row> reportRows() {
  RunReport report;
  ReportDocument<RunReport> document{report};
  schema::Rows v;
  fields(v, document);
  return std::move(v).take();
}

}  // namespace cleave::pipeline
