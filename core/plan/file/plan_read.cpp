#include "base/json.h"
#include "base/quantities.h"
#include "graph/json.h"
#include "graph/layers.h"
#include "graph/type_text.h"
#include "plan/build/layer_strategy_of.h"
#include "plan/build/measure_shares.h"
#include "plan/build/steps.h"
#include "plan/file/certificate_json.h"
#include "plan/file/plan_file.h"
#include "plan/file/replication_json.h"
#include "plan/file/schema.h"
#include "plan/file/seal.h"
#include "program/check.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <unordered_map>

namespace cleave::plan {
namespace {

constexpr std::size_t kMaxTexts = 10'000;  // warnings, demands

class PlanReader {
 public:
  explicit PlanReader(const JsonObject& root) : m_root(root) {}

  Result<Plan> read() && {
    CLEAVE_TRY_VOID(readProgram());
    CLEAVE_TRY_VOID(readHead());
    CLEAVE_TRY_VOID(readFigures());
    CLEAVE_TRY_VOID(readCostSettings());
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

  Result<void> readHead() {
    CLEAVE_TRY(m_plan.madeBy, m_root.text("made_by", ""));
    CLEAVE_TRY(const JsonObject model, m_root.object("model"));
    CLEAVE_TRY(m_plan.model.architecture, model.text("architecture"));
    CLEAVE_TRY(m_plan.model.modelType, model.text("model_type"));
    CLEAVE_TRY(m_plan.model.dtype, model.word("dtype", graph::parseDType));
    CLEAVE_TRY(m_plan.model.isExported, model.flag("exported", false));
    const std::int64_t least = m_plan.model.isExported ? 0 : 1;
    CLEAVE_TRY(m_plan.model.batch, model.integer("batch", {least, program::kMaxSize}));
    CLEAVE_TRY(m_plan.model.sequence, model.integer("sequence", {least, program::kMaxSize}));
    CLEAVE_TRY_VOID(readSizes(model));
    CLEAVE_TRY(m_plan.model.input.weights, model.text("weights", ""));
    CLEAVE_TRY(m_plan.model.input.mask, model.flag("mask"));
    CLEAVE_TRY(m_plan.model.input.tokenTypes, model.flag("token_types", false));
    CLEAVE_TRY(const bool hasLoss, model.flag("loss"));
    m_plan.model.input.loss = hasLoss || m_plan.model.isExported;
    CLEAVE_TRY(m_plan.model.input.dropout, model.flag("dropout", false));
    CLEAVE_TRY(m_plan.model.dropouts, model.text("dropout_probabilities", ""));
    CLEAVE_TRY(m_plan.model.input.logitsToKeep, model.integer("logits_to_keep", {0, program::kMaxSize}));
    if (model.has("cache")) {
      CLEAVE_TRY(m_plan.model.input.cacheUse, model.word("cache", graph::parseCacheUse));
      CLEAVE_TRY(m_plan.model.input.cachePositions, model.integer("cache_positions", {1, program::kMaxSize}));
    }
    CLEAVE_TRY(m_plan.model.hasWeights, model.flag("has_weights"));
    if (!m_plan.model.isExported) {
      m_plan.model.setShape(m_plan.model.batch, m_plan.model.sequence);
      m_plan.model.input.dtype = m_plan.model.dtype;
    }
    m_plan.spec.dropout = m_plan.model.input.dropout;
    graph::Freezing& freezing = m_plan.model.input.freezing;
    if (model.has("written_buffers")) {
      CLEAVE_TRY(m_plan.model.writtenBuffers, model.texts("written_buffers", kMaxTexts));
    }
    if (model.has("freeze")) {
      CLEAVE_TRY(freezing.freeze, model.texts("freeze", kMaxTexts));
    }
    if (model.has("train_only")) {
      CLEAVE_TRY(freezing.trainOnly, model.texts("train_only", kMaxTexts));
    }
    CLEAVE_TRY(m_plan.spec.engine, m_root.word("engine", solve::parseEngine));
    CLEAVE_TRY(m_plan.spec.candidateSet, m_root.word("menu", rules::parseCandidateSet));
    CLEAVE_TRY(m_plan.spec.sequenceParallel, m_root.word("sequence_parallel", rules::parseSequenceParallel));
    CLEAVE_TRY(m_plan.warnings, m_root.texts("warnings", kMaxTexts));
    return {};
  }

  Result<void> readSizes(const JsonObject& model) {
    if (!model.has("sizes")) return {};
    CLEAVE_TRY(const JsonObject sizes, model.object("sizes"));
    for (const auto& [symbol, size] : sizes.json().items()) {
      CLEAVE_TRY(m_plan.model.input.sizes[symbol], sizes.integer(symbol, {0, program::kMaxSize}));
    }
    return {};
  }

  Result<void> readFigures() {
    CLEAVE_TRY(const JsonObject timings, m_root.object("timings_ms"));
    CLEAVE_TRY(m_plan.timings.loadMs, timings.number("load"));
    CLEAVE_TRY(m_plan.timings.captureMs, timings.number("capture"));
    CLEAVE_TRY(m_plan.timings.decomposeMs, timings.number("decompose"));
    CLEAVE_TRY(m_plan.timings.solveMs, timings.number("solve"));
    CLEAVE_TRY(m_plan.timings.annotateMs, timings.number("annotate"));
    CLEAVE_TRY(m_plan.timings.replaceMs, timings.number("replace"));
    CLEAVE_TRY(const JsonObject search, m_root.object("search"));
    CLEAVE_TRY(m_plan.search.tries, search.count("tries"));
    CLEAVE_TRY(m_plan.search.conflicts, search.count("conflicts"));
    CLEAVE_TRY(m_plan.search.backtracks, search.count("backtracks"));
    CLEAVE_TRY(m_plan.search.events, search.count("events"));
    CLEAVE_TRY(m_plan.search.visits, search.count("visits"));
    return {};
  }

  Result<void> readCostSettings() {
    solve::CostSettings& settings = m_plan.spec.cost;
    CLEAVE_TRY(const JsonObject cost, m_root.object("cost"));
    CLEAVE_TRY(settings.isTraining, cost.flag("training"));
    CLEAVE_TRY(settings.optimizer, cost.word("optimizer", solve::parseOptimizer));
    CLEAVE_TRY(settings.checkpointsActivations, cost.flag("checkpoints_activations", false));
    CLEAVE_TRY(const std::int64_t budget, cost.integer("budget_bytes", {1, program::kMaxSize}));
    CLEAVE_TRY(m_plan.isProvedOptimal, cost.flag("proved"));
    if (cost.has("lower_bound_fs")) {
      CLEAVE_TRY(m_plan.lowerBoundFs, cost.time("lower_bound_fs"));
    }
    CLEAVE_TRY_VOID(readSlack(cost));
    CLEAVE_TRY(const JsonObject device, m_root.object("device"));
    CLEAVE_TRY(settings.profile, solve::readDeviceProfile(device));
    // A budget is of the user's own where it is another than the device's memory: with that, another device has its
    // own.
    if (budget != settings.profile.memoryBytes) settings.memoryBudget = budget;
    CLEAVE_TRY(const auto demands, m_root.texts("demands", kMaxTexts));
    return spec::addDemands(demands, m_plan.spec);
  }

  /// Files written before there was a slack lack both: their plans are the fastest.
  Result<void> readSlack(const JsonObject& cost) {
    CLEAVE_TRY(const double percent, cost.number("slack_percent", 0.0));
    if (!(percent >= 0 && percent <= solve::kMostSlackPercent)) {
      return cost.wrong("slack_percent", fmt::format("a number from 0 to {}", solve::kMostSlackPercent));
    }
    m_plan.spec.cost.slackPercent = percent;
    if (!cost.has("fastest")) return {};
    CLEAVE_TRY(const JsonObject fastest, cost.object("fastest"));
    m_plan.fastest = Plan::Fastest();
    CLEAVE_TRY(m_plan.fastest->femtoseconds, fastest.time("step_fs"));
    CLEAVE_TRY(m_plan.fastest->bytes, fastest.integer("rank_bytes", kNotNegative));
    return {};
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

  Result<LayerPlan> readLayer(const JsonObject& fields) {
    LayerPlan layer;
    CLEAVE_TRY(layer.name, fields.text("name"));
    CLEAVE_TRY(layer.kind, fields.word("kind", parseKind));
    CLEAVE_TRY(layer.strategy, fields.word("strategy", rules::parseStrategy));
    CLEAVE_TRY(layer.axis, fields.text("axis"));
    CLEAVE_TRY(layer.gatherOutput, fields.flag("gather_output"));
    CLEAVE_TRY(layer.inputIsParallel, fields.flag("input_is_parallel"));
    CLEAVE_TRY(layer.sequenceParallel, fields.flag("sequence_parallel"));
    CLEAVE_TRY(layer.weight, fields.text("weight", ""));
    CLEAVE_TRY(layer.replication, readReplication(fields));
    CLEAVE_TRY(layer.reason, fields.text("reason"));
    if (fields.has("regret_fs")) {
      CLEAVE_TRY(layer.regretFs, fields.timeDifference("regret_fs"));
    }
    CLEAVE_TRY(layer.isRegretKnown, fields.flag("regret_known", true));  // older files lack it, and the next
    CLEAVE_TRY(layer.isForcedByBudget, fields.flag("forced_by_budget", false));
    CLEAVE_TRY(const std::string value, fields.text("value"));
    const auto found = m_inGraph.find(value);
    if (found != m_inGraph.end()) layer.node = m_plan.graph->value(found->second).producer;
    const auto shape = layer.node.isValid() ? graph::layerShape(*m_plan.graph, layer.node) : std::nullopt;
    if (!shape)
      return fail(ErrorCode::BadInput, "{}.value {} is the result of no layer.", fields.where(), quotedText(value));
    m_solution.strategies[layer.node.index()] =
        layerStrategyOf(m_problem, layer.node, *shape, layer.strategy, m_solution);
    if (!m_solution.strategies[layer.node.index()]) {
      return fail(ErrorCode::BadInput, "{}: {} cannot be {} on {} ranks with the placements in plan.values.",
                  fields.where(), quotedText(layer.name), rules::toText(layer.strategy), m_plan.spec.ranks);
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
        CLEAVE_TRY(const JsonObject fields, list.object(next));
        ++next;
        CLEAVE_TRY(const std::string after, fields.text("after"));
        CLEAVE_TRY(const std::string kind, fields.text("kind"));
        CLEAVE_TRY(const std::int64_t bytes, fields.integer("bytes", {0, program::kMaxSize}));
        CLEAVE_TRY(const std::int64_t at, fields.integer("node", {0, program::kMaxSize}));
        if (kind != rules::toText(performed.kind) || bytes != performed.bytes || at != node.raw()) {
          return fail(ErrorCode::BadInput, "{} is {} of {} at node {}, but the program performs {} of {} at node {}.",
                      fields.where(), quotedText(kind), counted(bytes, "byte"), at, rules::toText(performed.kind),
                      counted(performed.bytes, "byte"), node.raw());
        }
        m_plan.collectives.push_back({after, performed.kind, bytes, node});
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
