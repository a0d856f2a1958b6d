#include "base/json_writer.h"
#include "base/made_items.h"
#include "base/schema_rows.h"
#include "base/schema_writer.h"
#include "graph/json.h"
#include "plan/file/certificate_json.h"
#include "plan/file/plan_file.h"
#include "plan/file/plan_schema.h"
#include "plan/file/replication_schema.h"
#include "plan/file/seal.h"

namespace cleave::plan {
namespace {

CollectiveEntry entryOf(const CollectivePlan& collective) {
  return {collective.after, std::string(rules::toText(collective.kind)), collective.bytes,
          static_cast<std::int64_t>(collective.programNode.raw())};
}

/// A value of the ATen graph as the file has it.
struct ValueEntry {
  std::string_view name, op, dtype;
  graph::Shape shape;
  std::string placement, computedAs;
  std::string_view scope, origin, source;
};
ValueEntry entryOf(const Plan& plan, ValueId id) {
  const Graph& graph = *plan.graph;
  const graph::Value& value = graph.value(id);
  const graph::Node& node = graph.node(value.producer);
  const auto changed = plan.solution->computedAs.find(id);
  return {.name = value.name,
          .op = node.kind == graph::NodeKind::Call ? std::string_view(graph.opName(node)) : sourceText(node.kind),
          .dtype = graph::toText(value.type.dtype),
          .shape = value.type.shape,
          .placement = plan.solution->of(id).text(),
          .computedAs = changed == plan.solution->computedAs.end() ? std::string() : changed->second.text(),
          .scope = graph.scope(node.scope).path,
          .origin = plan.origins[id.index()],
          .source = graph.sourceOf(node)};
}

void memoryFields(auto& v, const Plan& plan) {
  const MemoryPrediction& memory = plan.memory;
  v.object(field("per_rank_bytes", "Bytes per rank"), [&](auto& v) {
    v(field("parameters", "Parameters"), memory.parameters);
    v(field("constants", "Constants"), memory.constants);
    v(field("inputs", "Inputs"), memory.inputs);
    v(field("activations", "Intermediate values at the peak"), memory.peakActivations - memory.workspaceAtPeak);
    v(field("workspace", "Work space at the peak"), memory.workspaceAtPeak);
    v(field("total", "Their sum"), memory.total());
  });
  v(field("replicated_parameters", "Bytes of replicated parameters; earlier versions wrote whole_parameters"),
    memory.replicatedParameters);
  const NodeId peak = memory.peakNode;
  v(nullable("peak_at", "Value of the program at the peak"),
    peak.isValid() ? plan.program->value(plan.program->node(peak).results.at(0)).name : std::string());
}

void backwardFields(auto& v, const program::BackwardCollective& backward) {
  v(field("kind", "`all_reduce`, `all_gather` or `reduce_scatter`"), rules::toText(backward.collective.kind));
  v(field("bytes", "Bytes of the whole tensor"), backward.collective.bytes);
  v(field("ranks", "Number of ranks in it"), backward.ranks);
  v(field("node", "Index in program.nodes; null: sums of parameters' gradients at the end"), backward.node,
    ProgramNodeForm{});
}

void valueFields(auto& v, const ValueEntry& value) {
  v(field("name", "Name"), value.name);
  v(field("op", "Operator, or `input`, `parameter`, `constant`"), value.op);
  v(field("dtype", "Element type"), value.dtype);
  v(field("shape", "Shape on all ranks together"), value.shape);
  v(field("placement", "Placement"), value.placement);
  v(omitted("computed_as", "Placement before redistribution"), value.computedAs);
  v(field("scope", "Module"), value.scope);
  v(nullable("origin", "Captured operator that it comes from"), value.origin);
  v(omitted("source", "Line of the model's code"), value.source);
}

/// The fields of program::writeParameters.
void parameterFields(auto& v) {
  const std::string text;
  const std::int64_t number = 0;
  const graph::Shape shape;
  v(field("name", "Name"), text);
  v(field("dtype", "Element type on the ranks"), text);
  v(field("stored_dtype", "Element type in the files"), text);
  v(field("shape", "Shape on all ranks together"), shape);
  v(field("local_shape", "Shape on one rank"), shape);
  v(field("placement", "Placement"), text);
  v(omitted("tensors_per_item", "Stored tensors of each item of dimension 0"), number);
  v.list(field("pieces", "Pieces of stored tensors"), std::vector<int>(), [&](auto& v, auto&) {
    v(field("rank", "The rank that reads it"), number);
    v(field("tensor", "Name of the stored tensor"), text);
    v(field("file", "File in the model's folder; empty: the checkpoint lacks it, or has it packed"), text);
    v(field("dim", "Dimension that is cut; -1: a scalar"), number);
    v(field("start", "Start in that dimension; all of the other dimensions is read"), number);
    v(field("length", "Length in that dimension"), number);
  });
}

/// The fields of writeCertificate.
void certificateFields(auto& v) {
  const std::string text;
  const std::int64_t number = 0;
  const std::vector<std::int64_t> numbers;
  v(field("time_weight", "Weight of time in the sum that is minimised"), number);
  v(field("byte_weight", "Weight of bytes"), number);
  v(field("steps", "Nodes in the order of the search"), numbers);
  v(field("placements", "Placements that the states refer to"), std::vector<std::string>());
  v.list(field("states", "States at a boundary"), std::vector<int>(), [&](auto& v, auto&) {
    v(field("count", "Number of states"), number);
    v(field("width", "Tokens per state"), number);
    v(field("tokens", "4 × index of the placement + shares that are paid"), numbers);
  });
  const auto skip = [](auto&) {};
  v.part(field("claims", "Cost to the end beyond a boundary's base; null: the state leads to no plan"),
         "list of lists of integers", skip);
  v.part(field("boundaries", "[states, claims, base] of each boundary"), "list of lists of integers", skip);
}

/// All fields of the file. A default plan lists them.
void rootFields(auto& v, const Plan& plan, const Asked& asked) {
  const bool hasGraph = plan.graph != nullptr;
  v(field("schema", "`cleave.plan/1`"), program::kPlanSchema);
  headFields(v, plan, asked, [&](auto& out) { program::writeCheckpointed(out, plan.checkpointed); });
  v.list(field("layers", "Layers, in the order of the graph"), plan.layers, [&](auto& v, auto& layer) {
    const std::string value = hasGraph ? plan.graph->value(plan.graph->node(layer.node).results[0]).name : "";
    fields(v, layer, value);
  });
  v.object(field("shares", "How much of the work and of the weights the ranks divide"),
           [&](auto& v) { fields(v, plan.shares, plan.graph.get()); });
  v.list(field("collectives", "Collectives of a forward pass, in execution order"), plan.collectives,
         [&](auto& v, auto& collective) {
           const CollectiveEntry entry = entryOf(collective);
           fields(v, entry);
         });
  const std::vector<program::BackwardCollective> none;
  v.list(omitted("backward", "Plans for training: collectives of the backward pass, in execution order",
                 plan.backward != nullptr),
         plan.backward ? plan.backward->collectives : none, [](auto& v, auto& each) { backwardFields(v, each); });
  v.object(field("memory", "Predicted memory of one forward pass of the program"),
           [&](auto& v) { memoryFields(v, plan); });
  v.part(
      field("parameters", "Parameters of the program"), "list of objects",
      [&](auto& out) { program::writeParameters(out, plan.parameters); }, [](auto& v) { parameterFields(v); });
  const auto entry = [&plan](std::size_t i) { return entryOf(plan, ValueId(i)); };
  const std::size_t values = hasGraph ? plan.graph->values.size() : 0;
  v.list(field("values", "Values of the ATen graph, in its order"), MadeItems(values, entry),
         [](auto& v, auto& value) { valueFields(v, value); });
  v.part(field("program", "The rank program (`core/graph/json.cpp`)"), "object",
         [&](auto& out) { graph::writeGraph(out.key("program"), *plan.program); });
  v.part(field("graph", "The ATen graph"), "object",
         [&](auto& out) { graph::writeGraph(out.key("graph"), *plan.graph); });
  v.part(
      omitted("certificate", "Proof that no plan is faster"), "object",
      [&](auto& out) {
        if (plan.certificate) writeCertificate(out, *plan.certificate);
      },
      [](auto& v) { certificateFields(v); });
}

}  // namespace

std::string toJson(const Plan& plan) {
  const Asked asked{plan.spec.candidates(), plan.spec.cost.budgetBytes(), spec::demandTexts(plan.spec)};
  JsonWriter json;
  json.beginObject();
  schema::Writer v(json);
  rootFields(v, plan, asked);
  json.endObject();
  return std::move(json).take();
}

std::string toSealedJson(const Plan& plan) { return withSeal(toJson(plan)); }

std::vector<schema::Row> planRows() {
  Plan plan;
  plan.model.isExported = true;  // its sizes have the widest ranges
  schema::Rows v;
  rootFields(v, plan, Asked());
  v(omitted(kSealKey.data(), "Digest of all names and values except the timings"), std::string());
  return std::move(v).take();
}

}  // namespace cleave::plan
