#include "base/json_writer.h"
#include "graph/json.h"
#include "plan/file/certificate_json.h"
#include "plan/file/plan_file.h"
#include "plan/file/replication_json.h"
#include "plan/file/schema.h"
#include "plan/file/seal.h"
#include "solve/cost/memory_parts.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

// clang-format off
/// Layout of a plan file, schema "cleave.plan/1". Sizes are in elements or bytes, times in milliseconds.
///
///   schema, made_by                              the version of Cleave that wrote the file; may be absent
///   model {source, architecture, model_type, dtype, batch, sequence, mask, token_types, loss, dropout,
///          dropout_probabilities, logits_to_keep, has_weights, exported, sizes {symbol: size}, weights, quantization}
///                                                token_types and dropout only where they are true;
///                                                dropout_probabilities ("attn_pdrop 0.1") only where config.json has
///                                                some above 0; exported, sizes and weights only of exported programs
///                                                (.pt2); quantization only where parameters are stored packed
///                                                (graph.packed: their bytes): it is not run then
///   ranks, engine, menu, sequence_parallel, seed
///   checkpointed [module]                        training: blocks that run again (graph/checkpoints.h); may be absent
///   cost {collectives, collective_bytes          of one forward step, as the program performs them
///         step_fs, step_ms, compute_fs, traffic_fs, rank_bytes, memory {…}, proved, lower_bound_fs,
///         slack_percent, fastest {step_fs, rank_bytes} or null, training, optimizer,
///         checkpoints_activations, budget_bytes}
///                                                predicted (solve/cost/cost_model.h); a reader computes it again.
///                                                budget_bytes: the device's memory_bytes unless the user set a budget
///   device {…}                                   the profile that cost is for (solve/cost/device_profile.h)
///   demands [text]                               pins and the like
///   timings_ms {load, capture, decompose, solve, annotate, replace}
///   search {tries, conflicts, backtracks, events, visits}
///   warnings [sentence]
///   layers [{name, kind, strategy, axis, gather_output, input_is_parallel, sequence_parallel, weight, value, standing,
///            reason, regret_fs, forced_by_budget}]
///   shares {…}                                   how much of the work and the weights the ranks divide
///                                                (replication_json.h)
///   collectives [{after, kind, bytes, node}]     in execution order; `node` is the index in program.nodes
///   backward [{kind, bytes, ranks, node}]        of a plan for training: the collectives of a backward pass, in
///                                                execution order; `node` is null for the sums of parameters'
///                                                gradients at the end; a reader derives them again
///   memory {per_rank_bytes {...}, peak_at}       of one forward pass of `program`, as a run makes it; of a step, with
///                                                what training or generation keeps: cost.memory (memory_parts.h)
///   parameters [{name, dtype, stored_dtype, shape, local_shape, placement, pieces [{rank, tensor, file, dim, start,
///                length}]}]
///   values [{name, op, dtype, shape, placement, computed_as, scope, origin, source}]
///                                                of the ATen graph, in its order; `computed_as` only where a value is
///                                                redistributed before it is read; `op` is the operator, or input,
///                                                parameter, constant; `origin` names the captured operator; `source`
///                                                is the line of the model's code, where it is known
///   program, graph                               the rank program and the ATen graph (graph/json.h)
///   certificate {…}                              proves that no plan is faster (certificate_json.h); may be absent
///
/// Deterministic but for timings_ms. A piece covers [start, start + length) of dimension `dim` of a stored tensor,
/// whole in the others (`dim` -1 for a scalar); an empty `file` means that the checkpoint lacks it, or has it packed.
// clang-format on

namespace cleave::plan {
namespace {

/// Writes nothing for an empty list.
void writeTexts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  json.key(key).beginArray();
  for (const std::string& text : texts) json.value(text);
  json.endArray();
}

void writeModel(JsonWriter& json, const ModelInfo& model) {
  json.key("model").beginObject();
  json.key("source").value(model.source);
  json.key("architecture").value(model.architecture);
  json.key("model_type").value(model.modelType);
  json.key("dtype").value(graph::toText(model.dtype));
  json.key("batch").value(model.batch);
  json.key("sequence").value(model.sequence);
  json.key("mask").value(model.input.mask);
  if (model.input.tokenTypes) json.key("token_types").value(true);
  json.key("loss").value(model.hasLoss());
  if (model.input.dropout) json.key("dropout").value(true);
  if (!model.dropouts.empty()) json.key("dropout_probabilities").value(model.dropouts);
  json.key("logits_to_keep").value(model.input.logitsToKeep);
  if (model.input.cacheUse != graph::CacheUse::None) {
    json.key("cache").value(graph::toText(model.input.cacheUse));
    json.key("cache_positions").value(model.input.cachePositions);
  }
  json.key("has_weights").value(model.hasWeights);
  if (model.isExported) {
    json.key("exported").value(true);
    json.key("sizes").beginObject();
    for (const auto& [symbol, size] : model.input.sizes) json.key(symbol).value(size);
    json.endObject();
  }
  if (!model.input.weights.empty()) json.key("weights").value(model.input.weights);
  if (!model.quantization.empty()) json.key("quantization").value(model.quantization);
  writeTexts(json, "written_buffers", model.writtenBuffers);
  writeTexts(json, "freeze", model.input.freezing.freeze);
  writeTexts(json, "train_only", model.input.freezing.trainOnly);
  json.endObject();
}

void writePrediction(JsonWriter& json, const Plan& plan) {
  const solve::PlanCost& cost = plan.cost;
  json.key("step_fs").value(cost.femtoseconds());
  json.key("step_ms").real(static_cast<double>(cost.femtoseconds()) / 1e12);
  json.key("compute_fs").value(cost.sum.computeFs);
  json.key("traffic_fs").value(cost.sum.trafficFs);
  json.key("rank_bytes").value(cost.bytes());
  json.key("memory").beginObject();
  for (const solve::MemoryPart& part : solve::memoryParts(cost)) json.key(part.key).value(part.bytes);
  json.endObject();
  json.key("proved").value(plan.isProvedOptimal);
  json.key("lower_bound_fs");
  plan.lowerBoundFs ? json.value(*plan.lowerBoundFs) : json.null();
  json.key("slack_percent").real(plan.spec.cost.slackPercent);
  json.key("fastest");
  if (plan.fastest) {
    json.beginObject();
    json.key("step_fs").value(plan.fastest->femtoseconds);
    json.key("rank_bytes").value(plan.fastest->bytes);
    json.endObject();
  } else {
    json.null();
  }
  json.key("training").value(plan.spec.cost.isTraining);
  json.key("optimizer").value(solve::toText(plan.spec.cost.optimizer));
  json.key("checkpoints_activations").value(plan.spec.cost.checkpointsActivations);
  json.key("budget_bytes").value(plan.spec.cost.budgetBytes());
}

void writeFigures(JsonWriter& json, const Plan& plan) {
  std::int64_t bytes = 0;
  for (const CollectivePlan& collective : plan.collectives) bytes += collective.bytes;
  json.key("cost").beginObject();
  json.key("collectives").value(plan.collectives.size());
  json.key("collective_bytes").value(bytes);
  writePrediction(json, plan);
  json.endObject();
  json.key("device").raw(jsonText(solve::toJson(plan.spec.cost.profile)));
  json.key("demands").beginArray();
  for (const std::string& demand : spec::demandTexts(plan.spec)) json.value(demand);
  json.endArray();

  json.key("timings_ms").beginObject();
  json.key("load").milliseconds(plan.timings.loadMs);
  json.key("capture").milliseconds(plan.timings.captureMs);
  json.key("decompose").milliseconds(plan.timings.decomposeMs);
  json.key("solve").milliseconds(plan.timings.solveMs);
  json.key("annotate").milliseconds(plan.timings.annotateMs);
  json.key("replace").milliseconds(plan.timings.replaceMs);
  json.endObject();

  json.key("search").beginObject();
  json.key("tries").value(plan.search.tries);
  json.key("conflicts").value(plan.search.conflicts);
  json.key("backtracks").value(plan.search.backtracks);
  json.key("events").value(plan.search.events);
  json.key("visits").value(plan.search.visits);
  json.endObject();
}

void writeBackward(JsonWriter& json, const Plan& plan) {
  if (!plan.backward) return;
  json.key("backward").beginArray();
  for (const program::BackwardCollective& backward : plan.backward->collectives) {
    json.beginObject();
    json.key("kind").value(rules::toText(backward.collective.kind));
    json.key("bytes").value(backward.collective.bytes);
    json.key("ranks").value(backward.ranks);
    json.key("node");
    backward.node.isValid() ? json.value(backward.node.raw()) : json.null();
    json.endObject();
  }
  json.endArray();
}

void writeLayers(JsonWriter& json, const Plan& plan) {
  json.key("layers").beginArray();
  for (const LayerPlan& layer : plan.layers) {
    json.beginObject();
    json.key("name").value(layer.name);
    json.key("kind").value(kindText(layer.kind));
    json.key("strategy").value(rules::inFiles(layer.strategy));
    json.key("axis").value(layer.axis);
    json.key("gather_output").value(layer.gatherOutput);
    json.key("input_is_parallel").value(layer.inputIsParallel);
    json.key("sequence_parallel").value(layer.sequenceParallel);
    json.key("weight");
    layer.weight.empty() ? json.null() : json.value(layer.weight);
    json.key("value").value(plan.graph->value(plan.graph->node(layer.node).results[0]).name);
    json.key("standing");
    writeReplication(json, layer.replication);
    json.key("reason").value(layer.reason);
    json.key("regret_fs");
    layer.regretFs ? json.value(*layer.regretFs) : json.null();
    json.key("regret_known").value(layer.isRegretKnown);
    json.key("forced_by_budget").value(layer.isForcedByBudget);
    json.endObject();
  }
  json.endArray();
}

void writeCollectives(JsonWriter& json, const Plan& plan) {
  json.key("collectives").beginArray();
  for (const CollectivePlan& collective : plan.collectives) {
    json.beginObject();
    json.key("after").value(collective.after);
    json.key("kind").value(rules::toText(collective.kind));
    json.key("bytes").value(collective.bytes);
    json.key("node").value(collective.programNode.raw());
    json.endObject();
  }
  json.endArray();
}

void writeMemory(JsonWriter& json, const Plan& plan) {
  const MemoryPrediction& memory = plan.memory;
  json.key("memory").beginObject();
  json.key("per_rank_bytes").beginObject();
  json.key("parameters").value(memory.parameters);
  json.key("constants").value(memory.constants);
  json.key("inputs").value(memory.inputs);
  json.key("activations").value(memory.peakActivations - memory.workspaceAtPeak);
  json.key("workspace").value(memory.workspaceAtPeak);
  json.key("total").value(memory.total());
  json.endObject();
  json.key("whole_parameters").value(memory.replicatedParameters);
  json.key("peak_at");
  if (memory.peakNode.isValid()) {
    json.value(plan.program->value(plan.program->node(memory.peakNode).results.at(0)).name);
  } else {
    json.null();
  }
  json.endObject();
}

void writeValues(JsonWriter& json, const Plan& plan) {
  const Graph& graph = *plan.graph;
  json.key("values").beginArray();
  for (ValueId id : idRange<ValueId>(graph.values.size())) {
    const graph::Value& value = graph.value(id);
    const graph::Node& node = graph.node(value.producer);
    json.beginObject();
    json.key("name").value(value.name);
    json.key("op").value(node.kind == graph::NodeKind::Call ? std::string_view(graph.opName(node))
                                                            : sourceText(node.kind));
    json.key("dtype").value(graph::toText(value.type.dtype));
    json.key("shape").values(value.type.shape);
    json.key("placement").value(plan.solution->of(id).text());
    const auto changed = plan.solution->computedAs.find(id);
    if (changed != plan.solution->computedAs.end()) json.key("computed_as").value(changed->second.text());
    json.key("scope").value(graph.scope(node.scope).path);
    json.key("origin");
    plan.origins[id.index()].empty() ? json.null() : json.value(plan.origins[id.index()]);
    if (const std::string& source = graph.sourceOf(node); !source.empty()) json.key("source").value(source);
    json.endObject();
  }
  json.endArray();
}

}  // namespace

std::string toJson(const Plan& plan) {
  JsonWriter json;
  json.beginObject();
  json.key("schema").value(program::kPlanSchema);
  if (!plan.madeBy.empty()) json.key("made_by").value(plan.madeBy);
  writeModel(json, plan.model);
  json.key("ranks").value(plan.spec.ranks);
  json.key("engine").value(solve::toText(plan.spec.engine));
  json.key("menu").value(rules::toText(plan.spec.candidates()));
  json.key("sequence_parallel").value(rules::toText(plan.spec.sequenceParallel));
  json.key("seed").value(plan.spec.seed);
  program::writeCheckpointed(json, plan.checkpointed);
  writeFigures(json, plan);
  json.key("warnings").beginArray();
  for (const std::string& warning : plan.warnings) json.value(warning);
  json.endArray();
  writeLayers(json, plan);
  writeShares(json, plan.shares, *plan.graph);
  writeCollectives(json, plan);
  writeBackward(json, plan);
  writeMemory(json, plan);
  program::writeParameters(json, plan.parameters);
  writeValues(json, plan);
  graph::writeGraph(json.key("program"), *plan.program);
  graph::writeGraph(json.key("graph"), *plan.graph);
  if (plan.certificate) writeCertificate(json, *plan.certificate);
  json.endObject();
  return std::move(json).take();
}

std::string toSealedJson(const Plan& plan) { return withSeal(toJson(plan)); }

}  // namespace cleave::plan
