#include "base/quantities.h"
#include "base/schema_reader.h"
#include "graph/json.h"
#include "graph/layers.h"
#include "graph/type_text.h"
#include "plan/build/layer_strategy_of.h"
#include "plan/build/measure_shares.h"
#include "plan/build/steps.h"
#include "plan/file/certificate_json.h"
#include "plan/file/plan_file.h"
#include "plan/file/plan_schema.h"
#include "plan/file/replication_json.h"
#include "plan/file/seal.h"
#include "program/check.h"

#include <nlohmann/json.hpp>

#include <unordered_map>

namespace cleave::plan {
namespace {

class PlanReader {
 public:
  explicit PlanReader(const JsonObject& root) : m_root(root) {}

  Result<Plan> read() && {
    CLEAVE_TRY_VOID(readProgram());
    CLEAVE_TRY_VOID(readHead());
    CLEAVE_TRY_VOID(readGraph());
    CLEAVE_TRY_VOID(readValues());
    CLEAVE_TRY_VOID(readLayers());
    CLEAVE_TRY_VOID(readCollectives());
    deriveBackward();
    m_plan.solution = std::make_shared<const solve::Solution>(std::move(m_solution));
    m_plan.memory = predictMemory(*m_plan.program, m_plan.parameters, *m_plan.graph);
    m_plan.cost = predictCost();
    m_plan.shares = sharesOf(m_problem, *m_plan.solution, {});
    CLEAVE_TRY_VOID(readReplicated(m_root, *m_plan.graph, m_plan.shares));
    CLEAVE_TRY(m_plan.certificate, readCertificate(m_root, *m_plan.graph));
    return std::move(m_plan);
  }

 private:
  Result<void> readProgram() {
    CLEAVE_TRY(program::RankProgram program, program::rankProgramFromJson(m_root));
    m_plan.model.source = std::move(program.source);
    m_plan.model.isExported = program.isExported;
    m_plan.model.quantization = std::move(program.quantization);
    m_plan.spec.ranks = program.ranks;
    m_plan.spec.seed = program.seed;
    m_plan.checkpointed = std::move(program.checkpointed);
    m_plan.program = std::move(program.graph);
    m_plan.parameters = std::move(program.parameters);
    for (ValueId id : idRange<ValueId>(m_plan.program->values.size()))
      m_inProgram.emplace(m_plan.program->value(id).name, id);
    return {};
  }

  /// The model and all settings.
  Result<void> readHead() {
    Asked asked;
    m_plan.spec.cost.slackPercent = 0;  // files without a slack have the fastest plan
    schema::Reader v(m_root);
    headFields(v, m_plan, asked, [](auto&) {});
    CLEAVE_TRY_VOID(std::move(v).finish());
    if (!m_plan.model.isExported) {
      m_plan.model.setShape(m_plan.model.batch, m_plan.model.sequence);
      m_plan.model.input.dtype = m_plan.model.dtype;
    }
    m_plan.spec.dropout = m_plan.model.input.dropout;
    m_plan.spec.candidateSet = asked.candidates;
    // A budget is of the user's own where it is another than the device's memory: with that, another device has its
    // own.
    solve::CostSettings& settings = m_plan.spec.cost;
    if (asked.budgetBytes != settings.profile.memoryBytes) settings.memoryBudget = asked.budgetBytes;
    return spec::addDemands(asked.demands, m_plan.spec);
  }

  /// Again from the solution: what a file claims is not believed.
  solve::PlanCost predictCost() const { return solve::costOf(m_problem, *m_plan.solution); }

  Result<void> readGraph() {
    CLEAVE_TRY(const JsonObject fields, m_root.object("graph"));
    CLEAVE_TRY(Graph graph, withContext(graph::graphFromJson(fields.json()), "plan.graph"));
    CLEAVE_TRY_VOID(withContext(program::checkOperators(graph), "plan.graph"));
    CLEAVE_TRY_VOID(withContext(program::checkTotalBytes(graph), "plan.graph"));
    CLEAVE_TRY_VOID(readSources(graph));
    m_plan.graph = std::make_shared<const Graph>(std::move(graph));
    m_problem = spec::problemOf(m_plan.graph, m_plan.spec);
    for (ValueId id : idRange<ValueId>(m_plan.graph->values.size()))
      m_inGraph.emplace(m_plan.graph->value(id).name, id);
    return checkInputs();
  }

  /// Reads the source lines, which are members of the values and not of the graph.
  Result<void> readSources(Graph& graph) const {
    CLEAVE_TRY(const JsonArray values, m_root.array("values"));
    std::unordered_map<std::string, graph::SourceId> known;
    for (std::size_t i = 0; i < std::min(values.size(), graph.values.size()); ++i) {
      CLEAVE_TRY(const JsonObject fields, values.object(i));
      CLEAVE_TRY(std::string line, fields.text("source", ""));
      if (line.empty()) continue;
      const auto [entry, isNew] = known.try_emplace(std::move(line), graph::SourceId(graph.sources.size()));
      if (isNew) graph.sources.push_back(entry->first);
      graph.nodes[graph.values[i].producer.index()].source = entry->second;
    }
    return {};
  }

  /// What the plan says of its inputs is what its graph takes.
  Result<void> checkInputs() const {
    const auto ids = m_inGraph.find("input_ids");
    if (ids == m_inGraph.end() || m_plan.model.isExported) return {};
    const graph::TensorType& type = m_plan.graph->value(ids->second).type;
    if (type.shape == Shape{m_plan.model.batch, m_plan.model.sequence}) return {};
    return fail(ErrorCode::BadInput, "plan.model has batch {} and sequence {}, but the input_ids of plan.graph are {}.",
                m_plan.model.batch, m_plan.model.sequence, graph::toText(type));
  }

  /// Placements of the ATen values, and which program values hold them.
  Result<void> readValues() {
    const Graph& graph = *m_plan.graph;
    CLEAVE_TRY(const JsonArray values, m_root.array("values"));
    if (values.size() != graph.values.size()) {
      return fail(ErrorCode::BadInput, "plan.values has {}, but plan.graph has {}.",
                  counted(std::ssize(values), "entry", "entries"), counted(std::ssize(graph.values), "value"));
    }
    m_plan.programValueOf.resize(graph.values.size());
    for (ValueId id : idRange<ValueId>(graph.values.size())) {
      CLEAVE_TRY(const JsonObject fields, values.object(id.index()));
      const graph::Value& value = graph.value(id);
      CLEAVE_TRY(const std::string name, fields.text("name"));
      if (name != value.name)
        return fail(ErrorCode::BadInput, "{} is called {}, but plan.graph calls it {}.", fields.where(),
                    quotedText(name), quotedText(value.name));
      CLEAVE_TRY(m_solution.placements.emplace_back(),
                 program::readPlacement(fields, "placement", value.type.shape, m_plan.spec.ranks));
      if (fields.has("computed_as")) {
        CLEAVE_TRY(m_solution.computedAs[id],
                   program::readPlacement(fields, "computed_as", value.type.shape, m_plan.spec.ranks));
      }
      CLEAVE_TRY(m_plan.origins.emplace_back(), fields.text("origin", ""));
      if (const auto held = m_inProgram.find(value.name); held != m_inProgram.end())
        m_plan.programValueOf[id.index()] = held->second;
    }
    return {};
  }

  Result<void> readLayers() {
    m_solution.strategies.resize(m_plan.graph->nodes.size());
    CLEAVE_TRY(const JsonArray layers, m_root.array("layers"));
    NodeId previous;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      CLEAVE_TRY(const JsonObject fields, layers.object(i));
      CLEAVE_TRY(LayerPlan layer, readLayer(fields));
      if (previous.isValid() && layer.node <= previous)
        return fail(ErrorCode::BadInput, "{} is out of order or given twice.", fields.where());
      previous = layer.node;
      m_plan.layers.push_back(std::move(layer));
    }
    for (NodeId node : idRange<NodeId>(m_plan.graph->nodes.size())) {
      if (!m_solution.strategies[node.index()] && graph::layerShape(*m_plan.graph, node)) {
        return fail(ErrorCode::BadInput, "plan.layers lacks {}.", graph::layerName(*m_plan.graph, node));
      }
    }
    return {};
  }

  Result<LayerPlan> readLayer(const JsonObject& object) {
    LayerPlan layer;
    std::string value;
    schema::Reader v(object);
    fields(v, layer, value);
    CLEAVE_TRY_VOID(std::move(v).finish());
    const auto found = m_inGraph.find(value);
    if (found != m_inGraph.end()) layer.node = m_plan.graph->value(found->second).producer;
    const auto shape = layer.node.isValid() ? graph::layerShape(*m_plan.graph, layer.node) : std::nullopt;
    if (!shape)
      return fail(ErrorCode::BadInput, "{}.value {} is the result of no layer.", object.where(), quotedText(value));
    m_solution.strategies[layer.node.index()] =
        layerStrategyOf(m_problem, layer.node, *shape, layer.strategy, m_solution);
    if (!m_solution.strategies[layer.node.index()]) {
      return fail(ErrorCode::BadInput, "{}: {} cannot be {} on {} ranks with the placements in plan.values.",
                  object.where(), quotedText(layer.name), rules::toText(layer.strategy), m_plan.spec.ranks);
    }
    return layer;
  }

  Result<void> readCollectives() {
    const Graph& program = *m_plan.program;
    CLEAVE_TRY(const JsonArray list, m_root.array("collectives"));
    std::size_t next = 0;
    for (NodeId node : idRange<NodeId>(program.nodes.size())) {
      for (const program::Collective& performed : program::collectivesOf(program, node)) {
        if (next == list.size())
          return fail(ErrorCode::BadInput, "plan.collectives has {}, but the program performs more.",
                      counted(static_cast<std::int64_t>(next), "entry", "entries"));
        CLEAVE_TRY(const JsonObject object, list.object(next));
        ++next;
        CollectiveEntry entry;
        schema::Reader v(object);
        fields(v, entry);
        CLEAVE_TRY_VOID(std::move(v).finish());
        if (entry.kind != rules::toText(performed.kind) || entry.bytes != performed.bytes || entry.node != node.raw()) {
          return fail(ErrorCode::BadInput, "{} is {} of {} at node {}, but the program performs {} of {} at node {}.",
                      object.where(), quotedText(entry.kind), counted(entry.bytes, "byte"), entry.node,
                      rules::toText(performed.kind), counted(performed.bytes, "byte"), node.raw());
        }
        m_plan.collectives.push_back({entry.after, performed.kind, entry.bytes, node});
      }
    }
    if (next != list.size())
      return fail(ErrorCode::BadInput, "plan.collectives has {}, but the program performs {}.",
                  counted(std::ssize(list), "entry", "entries"), next);
    return {};
  }

  /// Plans of early versions have no backward pass.
  void deriveBackward() {
    if (!m_plan.spec.cost.isTraining) return;
    auto backward = program::backwardOf(*m_plan.program, m_plan.parameters, m_plan.spec.ranks, m_plan.checkpointed);
    if (backward) m_plan.backward = std::make_shared<const program::Backward>(*std::move(backward));
  }

  const JsonObject& m_root;
  Plan m_plan;
  solve::Problem m_problem;  ///< that the plan answers
  solve::Solution m_solution;
  std::unordered_map<std::string_view, ValueId> m_inProgram, m_inGraph;  ///< by name
};

}  // namespace

Result<Plan> planFromJson(std::string_view text) {
  CLEAVE_TRY(const nlohmann::json json, parseJson(text, "The plan", program::kPlanLimits));
  CLEAVE_TRY(const JsonObject root, JsonObject::at(json, "plan"));
  CLEAVE_TRY(const std::string seal, root.text(kSealKey, ""));
  CLEAVE_TRY(Plan plan, PlanReader(root).read());
  if (!seal.empty()) plan.seal = seal == sealOf(json) ? Seal::Intact : Seal::Broken;
  return plan;
}

Result<Plan> readPlanFile(const fs::path& file) {
  CLEAVE_TRY(const std::string text, readTextFile(file, program::kPlanLimits.bytes));
  return withContext(planFromJson(text), file.string());
}

}  // namespace cleave::plan
