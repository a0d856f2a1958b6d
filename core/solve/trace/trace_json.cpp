#include "solve/trace/trace_json.h"

#include "base/json.h"
#include "graph/json.h"
#include "solve/problem/device_profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace cleave::solve {
namespace {

using Json = nlohmann::ordered_json;
using rules::CollectiveKind;
using rules::LayerStrategy;

constexpr std::array kCollectives{CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter};
constexpr int kMostRanks = 1 << 20;
constexpr JsonLimits kHeaderLimits{.bytes = 512 << 20, .depth = 32, .elements = 8'000'000};

Json toJson(const std::optional<CollectiveKind>& kind) { return kind ? Json(rules::toText(*kind)) : Json(nullptr); }

Json toJson(const LayerStrategy& option) {
  Json json{{"name", rules::inFiles(option.strategy)}, {"input", option.input.text()},
            {"weight", option.weight.text()},          {"bias", option.bias.text()},
            {"result", option.result.text()},          {"before", toJson(option.before)},
            {"after", toJson(option.after)},           {"reason", option.reason}};
  if (option.down) json["down"] = option.down->text();
  return json;
}

Json toJson(const Choice& choice) {
  Json json{{"results", Json::array()}, {"reason", choice.reason}};
  for (const Placement& p : choice.results) json["results"].push_back(p.text());
  if (choice.strategy) json["strategy"] = toJson(*choice.strategy);
  for (const Placement& p : choice.computedAs) json["computed_as"].push_back(p.text());
  return json;
}

Json toJson(const ConflictRecord& conflict) {
  Json json{
      {"node", conflict.node.raw()}, {"reason", conflict.reason}, {"culprits", Json::array()}, {"pins", conflict.pins}};
  for (ValueId v : conflict.culprits) json["culprits"].push_back(v.raw());
  return json;
}

Json toJson(const CostSettings& cost) {
  return {{"training", cost.isTraining},
          {"optimizer", toText(cost.optimizer)},
          {"checkpoints_activations", cost.checkpointsActivations},
          {"budget_bytes", cost.memoryBudget ? Json(*cost.memoryBudget) : Json(nullptr)},
          {"slack_percent", cost.slackPercent},
          {"device", toJson(cost.profile)}};
}

Json toJson(const Problem& problem) {
  Json pins = Json::array();
  for (const Pin& pin : problem.pins) pins.push_back(pin.text);
  return {{"ranks", problem.context.worldSize},
          {"menu", rules::toText(problem.context.candidateSet)},
          {"sequence_parallel", rules::toText(problem.context.sequenceParallel)},
          {"pins", std::move(pins)},
          {"rules_off", problem.rulesOff},
          {"redistributable", problem.redistributable},
          {"cost", toJson(problem.cost)}};
}

Result<Placement> placementOf(const std::string& text, const std::string& name) {
  const auto parsed = Placement::parse(text);
  if (!parsed)
    return fail(ErrorCode::BadInput, "{} is {}, which is not a placement such as R or S(1).", name, quotedText(text));
  return *parsed;
}

Result<Placement> placementField(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const std::string text, fields.text(key));
  return placementOf(text, fields.nameOf(key));
}

std::optional<CollectiveKind> parseCollective(std::string_view word) {
  const auto found = std::find_if(kCollectives.begin(), kCollectives.end(),
                                  [&](CollectiveKind kind) { return rules::toText(kind) == word; });
  return found == kCollectives.end() ? std::nullopt : std::optional(*found);
}

Result<std::optional<CollectiveKind>> collectiveField(const JsonObject& fields, const char* key) {
  if (!fields.has(key)) return std::optional<CollectiveKind>();
  return fields.word(key, parseCollective);
}

Result<LayerStrategy> readStrategy(const JsonObject& fields) {
  LayerStrategy option;
  CLEAVE_TRY(option.strategy, fields.word("name", rules::parseStrategy));
  CLEAVE_TRY(option.input, placementField(fields, "input"));
  CLEAVE_TRY(option.weight, placementField(fields, "weight"));
  CLEAVE_TRY(option.bias, placementField(fields, "bias"));
  CLEAVE_TRY(option.result, placementField(fields, "result"));
  CLEAVE_TRY(option.before, collectiveField(fields, "before"));
  CLEAVE_TRY(option.after, collectiveField(fields, "after"));
  CLEAVE_TRY(option.reason, fields.text("reason"));
  if (fields.has("down")) {
    CLEAVE_TRY(option.down, placementField(fields, "down"));
  }
  return option;
}

Result<std::vector<Placement>> placementsField(const JsonObject& fields, const char* key) {
  CLEAVE_TRY(const JsonArray list, fields.array(key));
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CLEAVE_TRY(const std::string text, list.text(i));
    CLEAVE_TRY(placements.emplace_back(), placementOf(text, list.nameOf(i)));
  }
  return placements;
}

Result<Choice> readChoice(const JsonObject& fields) {
  Choice choice;
  CLEAVE_TRY(choice.results, placementsField(fields, "results"));
  if (fields.has("computed_as")) {
    CLEAVE_TRY(choice.computedAs, placementsField(fields, "computed_as"));
    if (choice.computedAs.size() != choice.results.size()) return fields.wrong("computed_as", "as long as results");
  }
  CLEAVE_TRY(choice.reason, fields.text("reason"));
  if (fields.has("strategy")) {
    CLEAVE_TRY(const JsonObject strategy, fields.object("strategy"));
    CLEAVE_TRY(choice.strategy, readStrategy(strategy));
  }
  return choice;
}

IntegerRange below(std::size_t bound) { return {0, static_cast<std::int64_t>(bound) - 1}; }

Result<ConflictRecord> readConflict(const JsonObject& fields, const Graph& graph) {
  ConflictRecord conflict;
  CLEAVE_TRY(const std::int64_t node, fields.integer("node", below(graph.nodes.size())));
  conflict.node = NodeId(static_cast<std::size_t>(node));
  CLEAVE_TRY(conflict.reason, fields.text("reason"));
  CLEAVE_TRY(const auto culprits, fields.integers("culprits", below(graph.values.size())));
  for (const std::int64_t value : culprits) conflict.culprits.emplace_back(static_cast<std::size_t>(value));
  CLEAVE_TRY(conflict.pins, fields.texts("pins"));
  return conflict;
}

Result<CostSettings> readCost(const JsonObject& fields) {
  CostSettings cost;
  CLEAVE_TRY(cost.isTraining, fields.flag("training"));
  CLEAVE_TRY(cost.optimizer, fields.word("optimizer", parseOptimizer));
  CLEAVE_TRY(cost.checkpointsActivations, fields.flag("checkpoints_activations", false));
  CLEAVE_TRY(cost.memoryBudget, fields.optionalInteger("budget_bytes", kPositive));
  CLEAVE_TRY(cost.slackPercent, fields.number("slack_percent"));
  if (fields.has("device")) {  // older files lack it
    CLEAVE_TRY(const JsonObject device, fields.object("device"));
    CLEAVE_TRY(cost.profile, readDeviceProfile(device));
  }
  if (cost.slackPercent >= 0 && cost.slackPercent <= kMostSlackPercent) return cost;
  return fields.wrong("slack_percent", fmt::format("a number from 0 to {}", kMostSlackPercent));
}

Result<Problem> readProblem(const JsonObject& fields, std::shared_ptr<const Graph> graph) {
  Problem problem;
  problem.graph = std::move(graph);
  CLEAVE_TRY(const std::int64_t ranks, fields.integer("ranks", {1, kMostRanks}));
  problem.context.worldSize = static_cast<int>(ranks);
  CLEAVE_TRY(problem.context.candidateSet, fields.word("menu", rules::parseCandidateSet));
  CLEAVE_TRY(problem.context.sequenceParallel, fields.word("sequence_parallel", rules::parseSequenceParallel));
  CLEAVE_TRY(const auto pins, fields.texts("pins"));
  for (const std::string& text : pins) {
    CLEAVE_TRY(Pin pin, withContext(Pin::parse(text), fields.nameOf("pins")));
    problem.pins.push_back(std::move(pin));
  }
  CLEAVE_TRY(problem.rulesOff, fields.texts("rules_off"));
  CLEAVE_TRY(problem.redistributable, fields.texts("redistributable"));
  if (fields.has("cost")) {  // older files lack it
    CLEAVE_TRY(const JsonObject cost, fields.object("cost"));
    CLEAVE_TRY(problem.cost, readCost(cost));
  }
  return problem;
}

}  // namespace

std::string toJsonText(const Trace& trace) {
  const auto problem = trace.problem();
  Json choices = Json::array();
  for (std::size_t i = 0; i < trace.choiceCount(); ++i) choices.push_back(toJson(trace.choice(ChoiceId(i))));
  Json conflicts = Json::array();
  for (std::size_t i = 0; i < trace.conflictCount(); ++i) conflicts.push_back(toJson(trace.conflict(ConflictId(i))));
  Json document{{"graph", Json::parse(graph::toJson(*problem->graph))},
                {"problem", toJson(*problem)},
                {"choices", std::move(choices)},
                {"conflicts", std::move(conflicts)}};
  if (const auto engine = trace.engine()) document["engine"] = toText(*engine);
  return jsonText(document);
}

Result<TraceTables> traceTablesFromJson(const std::string& text) {
  CLEAVE_TRY(const nlohmann::json document, parseJson(text, "The header of the trace", kHeaderLimits));
  CLEAVE_TRY(const JsonObject top, JsonObject::at(document, "header"));
  TraceTables tables;
  if (top.has("engine")) {  // older files lack it
    CLEAVE_TRY(tables.engine, top.word("engine", parseEngine));
  }
  CLEAVE_TRY(const JsonObject graphFields, top.object("graph"));
  CLEAVE_TRY(Graph graph, graph::graphFromJson(graphFields.json()));
  CLEAVE_TRY(const JsonObject problemFields, top.object("problem"));
  CLEAVE_TRY(Problem problem, readProblem(problemFields, std::make_shared<const Graph>(std::move(graph))));
  tables.problem = std::make_shared<const Problem>(std::move(problem));
  CLEAVE_TRY(const JsonArray choices, top.array("choices"));
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CLEAVE_TRY(const JsonObject fields, choices.object(i));
    CLEAVE_TRY(tables.choices.emplace_back(), readChoice(fields));
  }
  CLEAVE_TRY(const JsonArray conflicts, top.array("conflicts"));
  for (std::size_t i = 0; i < conflicts.size(); ++i) {
    CLEAVE_TRY(const JsonObject fields, conflicts.object(i));
    CLEAVE_TRY(tables.conflicts.emplace_back(), readConflict(fields, *tables.problem->graph));
  }
  return tables;
}

}  // namespace cleave::solve
