#pragma once
/// The fields of the report of a run, schema "cleave.run/1", in the order of the file (base/schema.h). Internal to this
/// room: report.cpp writes them, and report_read.cpp reads them.
#include "pipeline/report/report_parts.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

namespace cleave::pipeline {

inline constexpr std::string_view kReportSchema = "cleave.run/1";
inline constexpr std::size_t kMostOutputs = 200'000;

/// The content of the file: a report, and what its writer takes from the plan. `Report`: RunReport, or const RunReport
/// to write it.
template <class Report>
struct ReportDocument {
  Report& report;
  PlanOfReport plan = {};
  double predictedStepUs = 0;
  std::vector<RankEntry> ranks = {};
  std::vector<MemoryEntry> memory = {};
  std::vector<OperatorEntry> operators = {};
  std::string mode = {};
  std::vector<std::string> arguments = {};  ///< of the run, without its plan
  int ranksOfRun() const { return plan.ranks * report.mesh.dp; }
};

template <class V>
void fields(V& v, schema::Of<PlanOfReport> auto& m) {
  v(field("model", "Source of the model"), m.model);
  v(newer("architecture", "Class of the model"), m.architecture);
  v(newer("dtype", "Element type of the parameters"), m.dtype);
  v(newer("batch", "Rows of the input"), m.batch, kCount);
  v(newer("sequence", "Positions per row"), m.sequence, kCount);
  v(field("ranks", "Ranks of the plan"), m.ranks, IntegerRange{1, kMostReportedRanks});
  v(newer("engine", "Engine that found the plan"), m.engine);
  v(newer("menu", "Candidate set"), m.menu);
  v(newer("sequence_parallel", "Sequence parallelism"), m.sequenceParallel);
  v(newer("device_profile", "Device of the predictions"), m.deviceProfile);
  v(newer("demands", "Pins and the like, as the user wrote them"), m.demands);
  v(newer("collectives", "Collectives in a forward pass"), m.collectives, kCount);
  v(newer("predicted_memory", "Predicted peak memory per rank, in bytes"), m.predictedMemory, kCount);
  v(newer("arguments", "Settings of the plan, as arguments of `cleave-cli plan`"), m.arguments);
}

void trainingFields(auto& v, auto& report) {
  auto& m = report.spec.training;
  v(field("optimizer", "Optimizer"), m.optimizer, schema::word(program::parseOptimizer));
  v(field("learning_rate", "Learning rate"), m.learningRate);
  v(newer("weight_decay", "Weight decay"), m.weightDecay);
  v(nullable("clip_norm", "Norm to which gradients are clipped"), m.clipNorm);
  v(newer("accumulate", "Micro-batches per step"), m.accumulate, kPositive);
  v.list(
      newer("steps", "Training steps of rank 0"), report.steps, [](auto& v, auto& step) { fields(v, step); },
      std::size_t{program::kMostSteps});
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(report)>>) {
    v.check([&](const auto&) -> Result<void> {
      m.steps = std::max<std::int64_t>(1, std::ssize(report.steps));
      return {};
    });
  }
}

void timelineFields(auto& v, auto& document) {
  auto& m = document.report.timeline;
  v(newer("step_us", "Microseconds until the last rank finished"), m.totalNs, NanosecondForm{});
  v(newer("predicted_step_us", "Predicted microseconds of the step"), document.predictedStepUs, MicrosecondForm{});
  v.writtenOnly([&](auto& v) {
    v(field("device_profile", "Device of the prediction"), document.plan.deviceProfile);
    v(nullable("slowest_rank", "The rank that the others waited for longest"), m.slowest());
  });
  v(newer("skew_us", "Largest time between two arrivals at one collective"), m.skewNs, NanosecondForm{});
  v(newer("one_clock", "All ranks share one clock"), m.isOneClock);
  v.list(
      newer("ranks", "Times of each rank, in order"), m.sums, [](auto& v, auto& sum) { fields(v, sum); },
      std::size_t{kMostReportedRanks});
  v.writtenOnly([&](auto& v) {
    v.list(field("operators", "Longest operators of the ATen graph"), document.operators, [](auto& v, auto& each) {
      v(field("value", "Value of the graph"), each.value);
      v(field("op", "Operator"), each.op);
      v(field("scope", "Module"), each.scope);
      v(field("compute_us", "Microseconds on its slowest rank"), each.computeNs, NanosecondForm{});
      v(field("predicted_us", "Predicted microseconds"), each.predictedUs);
    });
  });
}

void meshFields(auto& v, auto& document) {
  auto& mesh = document.report.mesh;
  v.object(newer("mesh", "Mesh of the ranks"), [&](auto& v) {
    v(field("dp", "Replicas"), mesh.dp, IntegerRange{1, kMostReportedRanks});
    v(field("tp", "Ranks per replica"), mesh.tp, IntegerRange{1, kMostReportedRanks});
  });
  v.check([&document](const auto& root) -> Result<void> {
    if (document.ranksOfRun() <= kMostReportedRanks) return {};
    return root.wrong("mesh", fmt::format("a mesh of at most {} ranks", kMostReportedRanks));
  });
  v.writtenOnly([&](auto& v) {
    v(field("world_size", "Number of ranks"), mesh.ranks());
    v(omitted("batch_of_replica", "Rows of the input per replica, if there are several", mesh.isReplicated()),
      document.plan.batch);
  });
}

/// What reading skips after the training: generation, and the sum over replicas.
void generationFields(auto& v, auto& report) {
  const auto& generation = report.generation;
  v(omitted("tokens", "Prompt and generated tokens, one list per row", generation.has_value()),
    generation ? generation->tokens : TokenRows(), TokensForm{});
  v.optional(omitted("generation", "Figures of the generation"), generation,
             [](auto& v, auto& figures) { fields(v, figures); });
  const ReplicaSum& sum = report.replicaSum;
  v.object(omitted("replica_sum", "Sum over the replicas in a training step", !sum.isEmpty()), [&](auto& v) {
    v(field("all_reduces", "All-reduces per step"), sum.collectives);
    v(field("bytes", "Bytes of the summed tensors per rank"), sum.bytes);
    v(field("predicted_us", "Predicted microseconds"), sum.predictedSeconds * 1e6);
    v(nullable("us", "Measured microseconds"), sum.tookSeconds ? std::optional(*sum.tookSeconds * 1e6) : std::nullopt);
  });
}

void toleranceFields(auto& v, auto& report) {
  v(nullable("compared_with", "What the outputs were compared with"), report.comparedWith);
  v(nullable("rtol", "Relative tolerance, if the user gave one"), report.spec.rtol);
  v(nullable("atol", "Absolute tolerance, if the user gave one"), report.spec.atol);
  v(newer("coarsest_dtype", "Coarsest element type in the computation"), report.coarsest,
    schema::word(graph::parseDType));
  v(newer("ruler_parts", "Parts of the ruler's sums; 0 without a ruler"), report.rulerParts,
    IntegerRange{0, program::kMaxRanks});
}

template <class V, class Report>
void fields(V& v, ReportDocument<Report>& document) {
  auto& report = document.report;
  const auto ofRank = [&document](auto& v, auto& entry) { fields(v, entry, document.ranksOfRun()); };
  v.writtenOnly([&](auto& v) { v(field("schema", "`cleave.run/1`"), kReportSchema); });
  v(nullable("passed", "The outputs are as expected; null without a comparison",
             report.verdict != RunVerdict::NotChecked),
    report.verdict, VerdictForm{});
  v.object(field("plan", "The plan that ran"), [&](auto& v) { fields(v, document.plan); });
  v(newer("mode", "`forward`, `train`, `generate` or `shapes`"), document.mode);
  v(newer("arguments", "Settings of the run, as arguments of `cleave-cli`"), document.arguments);
  meshFields(v, document);
  v(field("backend", "Backend of the collectives"), report.spec.backend, schema::word(launch::parseBackend));
  v(omitted("precision", "Precision of float32 products on GPUs"), report.precision);
  toleranceFields(v, report);
  v.object(omitted("training", "Settings and steps of the training", report.spec.training.isAsked()),
           [&](auto& v) { trainingFields(v, report); });
  v.writtenOnly([&](auto& v) { generationFields(v, report); });
  v.list(newer("outputs", "Compared outputs"), report.outputs, ofRank, kMostOutputs);
  v.list(newer("ranks", "Ranks that finished"), document.ranks, ofRank, std::size_t{kMostReportedRanks});
  v.object(omitted("time", "Times of the recorded step", !report.timeline.isEmpty()),
           [&](auto& v) { timelineFields(v, document); });
  v.list(omitted("memory", "Memory of the recorded step, by rank"), document.memory, ofRank,
         std::size_t{kMostReportedRanks});
  v(newer("violations", "Deviations of the ranks from the plan"), report.violations);
  v(newer("notes", "Notes"), report.notes);
  v(newer("warnings", "Warnings about the plan and its model"), report.warnings);
  v.optional(nullable("first_failure", "The first failure of a rank"), report.outcome.firstFailure, ofRank);
}

}  // namespace cleave::pipeline
