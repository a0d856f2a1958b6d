#pragma once
/// The fields of a plan file, schema "cleave.plan/1", in the order of the file (base/schema.h). Internal to this room:
/// plan_json.cpp writes them, plan_read.cpp reads them, and docs/file-formats.md lists them.
///
/// Times in femtoseconds and sizes in bytes are integers. The file is deterministic but for `timings_ms`. A reader
/// computes the prediction, the memory and the collectives of the backward pass again.
#include "base/schema.h"
#include "plan/file/model_schema.h"
#include "plan/file/plan_forms.h"
#include "plan/file/replication_form.h"
#include "plan/file/words.h"
#include "plan/plan.h"
#include "solve/cost/memory_parts.h"
#include "solve/problem/device_form.h"

#include <string>
#include <vector>

namespace cleave::plan {

/// Parts of the plan's spec in the form of the file.
struct Asked {
  rules::CandidateSet candidates = rules::CandidateSet::Optimum;
  std::int64_t budgetBytes = 0;
  std::vector<std::string> demands;
};

/// A collective as the file has it: the reader compares it with the program's.
struct CollectiveEntry {
  std::string after;  ///< value of the ATen graph
  std::string kind;
  std::int64_t bytes = 0, node = 0;
};

/// The prediction, which reading skips.
void predictionFields(auto& v, auto& plan) {
  std::int64_t bytes = 0;
  for (const CollectivePlan& collective : plan.collectives) bytes += collective.bytes;
  const solve::PlanCost& cost = plan.cost;
  v(field("collectives", "Collectives of a forward step"), plan.collectives.size());
  v(field("collective_bytes", "Bytes of their tensors"), bytes);
  v(field("step_fs", "Predicted time of a step"), cost.femtoseconds());
  v(field("step_ms", "The same in milliseconds"), static_cast<double>(cost.femtoseconds()) / 1e12);
  v(field("compute_fs", "Time of compute"), cost.sum.computeFs);
  v(field("traffic_fs", "Time of collectives"), cost.sum.trafficFs);
  v(field("rank_bytes", "Predicted peak memory per rank"), cost.bytes());
  v.object(field("memory", "Parts of rank_bytes"), [&](auto& v) {
    for (const solve::MemoryPart& part : solve::memoryParts(cost))
      v(field(part.key.data(), part.name.data()), part.bytes);
  });
}

void costFields(auto& v, auto& plan, auto& asked) {
  auto& settings = plan.spec.cost;
  v.writtenOnly([&](auto& v) { predictionFields(v, plan); });
  v(field("proved", "No plan within the slack is better"), plan.isProvedOptimal);
  v(nullable("lower_bound_fs", "No plan is faster than this"), plan.lowerBoundFs);
  v(newer("slack_percent", "Extra step time that a plan with less memory may take"), settings.slackPercent,
    schema::NumberBetween{0, solve::kMostSlackPercent});
  v.optional(nullable("fastest", "The fastest plan within the budget"), plan.fastest, [](auto& v, auto& fastest) {
    v(field("step_fs", "Its time of a step"), fastest.femtoseconds);
    v(field("rank_bytes", "Its peak memory per rank"), fastest.bytes, kNotNegative);
  });
  v(field("training", "Cost of a training step; otherwise of a forward pass"), settings.isTraining);
  v(field("optimizer", "Optimizer of the training"), settings.optimizer, schema::word(solve::parseOptimizer));
  v(newer("checkpoints_activations", "Blocks run again before their backward pass"), settings.checkpointsActivations);
  v(field("budget_bytes", "Memory budget per rank; the memory of the device unless the user set one"),
    asked.budgetBytes, IntegerRange{1, program::kMaxSize});
}

/// From `made_by` to `warnings`. `writeCheckpointed(out)` writes the blocks, which the program's reader reads.
void headFields(auto& v, auto& plan, auto& asked, auto&& writeCheckpointed) {
  const schema::Texts texts{kMostTexts};
  auto& spec = plan.spec;
  v(omitted("made_by", "Version of Cleave that wrote the file"), plan.madeBy);
  v.object(field("model", "The model and its inputs"), [&](auto& v) { fields(v, plan.model); });
  v.writtenOnly([&](auto& v) { v(field("ranks", "Number of ranks"), spec.ranks); });
  v(field("engine", "Engine that found the plan"), spec.engine, schema::word(solve::parseEngine));
  v(field("menu", "Candidate set"), asked.candidates, schema::word(rules::parseCandidateSet));
  v(field("sequence_parallel", "Sequence parallelism"), spec.sequenceParallel,
    schema::word(rules::parseSequenceParallel));
  v.writtenOnly([&](auto& v) { v(field("seed", "Seed of random inputs and initial values"), spec.seed); });
  v.part(omitted("checkpointed", "Modules of the blocks that run again before their backward pass"), "list of texts",
         writeCheckpointed);
  v.object(field("cost", "Predicted cost of a step, and the settings of the prediction"),
           [&](auto& v) { costFields(v, plan, asked); });
  v(field("device", "Device profile, `cleave.device/1`"), spec.cost.profile, solve::DeviceForm{});
  v(field("demands", "Pins and the like, as the user wrote them"), asked.demands, texts);
  v.object(field("timings_ms", "Measured times of the stages, in milliseconds"), [&](auto& v) {
    auto& m = plan.timings;
    const schema::Milliseconds milliseconds;
    v(field("load", "Open the model"), m.loadMs, milliseconds);
    v(field("capture", "Capture its graph"), m.captureMs, milliseconds);
    v(field("decompose", "Decompose it into ATen operators"), m.decomposeMs, milliseconds);
    v(field("solve", "Solve"), m.solveMs, milliseconds);
    v(field("annotate", "Annotate the layers"), m.annotateMs, milliseconds);
    v(field("replace", "Make the rank program"), m.replaceMs, milliseconds);
  });
  v.object(field("search", "Effort of the search"), [&](auto& v) {
    auto& m = plan.search;
    v(field("tries", "Tried candidates"), m.tries);
    v(field("conflicts", "Conflicts"), m.conflicts);
    v(field("backtracks", "Backtracks"), m.backtracks);
    v(field("events", "Events"), m.events);
    v(field("visits", "Visited steps"), m.visits);
  });
  v(field("warnings", "Warnings, one sentence each"), plan.warnings, texts);
}

/// `value`: the name of the layer's result in the ATen graph.
template <class V>
void fields(V& v, schema::Of<LayerPlan> auto& m, auto& value) {
  v(field("name", "Module of the layer"), m.name);
  v(field("kind", "`linear`, `embedding`, `cross_entropy` or `experts`"), m.kind, schema::word(parseKind, kindText));
  v(field("strategy", "Strategy (`core/rules/strategy.h`)"), m.strategy, schema::word(rules::parseStrategy));
  v(field("axis", "`column`, `row`, `vocab`, `expert` or `replicated`"), m.axis);
  v(field("gather_output", "The result is gathered"), m.gatherOutput);
  v(field("input_is_parallel", "The input is split"), m.inputIsParallel);
  v(field("sequence_parallel", "The layer scatters or gathers the sequence"), m.sequenceParallel);
  v(nullable("weight", "Name of its parameter"), m.weight);
  v(field("value", "Name of its result in the graph"), value);
  v(newer("standing", "Why it is replicated: see standing"), m.replication, ReplicationForm{});
  v(field("reason", "Why it has this strategy"), m.reason);
  v(nullable("regret_fs", "Extra time per step with the best other choice"), m.regretFs, schema::TimeDifference{});
  v(newer("regret_known", "The search computed regret_fs and forced_by_budget"), m.isRegretKnown);
  v(newer("forced_by_budget", "Every plan with another strategy is over the budget"), m.isForcedByBudget);
}

template <class V>
void fields(V& v, schema::Of<CollectiveEntry> auto& m) {
  v(field("after", "Value of the graph that it completes or feeds"), m.after);
  v(field("kind", "`all_reduce`, `all_gather` or `reduce_scatter`"), m.kind);
  v(field("bytes", "Bytes of the whole tensor"), m.bytes, kSizes);
  v(field("node", "Index in program.nodes"), m.node, kSizes);
}

}  // namespace cleave::plan
