#include "solve/trace_json.h"

#include "graph/json.h"

#include <array>
#include <nlohmann/json.hpp>

namespace cleave::solve {
namespace {

using Json = nlohmann::ordered_json;
using rules::CollectiveKind;
using rules::StrategyOption;

constexpr std::array kCollectives{CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter};
constexpr int kMostRanks = 1 << 20;

// ---- writing
// ---------------------------------------------------------------------------------------------------------

Json toJson(const std::optional<CollectiveKind>& kind) {
  return kind ? Json(rules::toText(*kind)) : Json(nullptr);
}

Json toJson(const StrategyOption& option) {
  Json json{{"name", rules::toText(option.strategy)}, {"input", option.input.text()},
            {"weight", option.weight.text()},         {"bias", option.bias.text()},
            {"result", option.result.text()},         {"before", toJson(option.before)},
            {"after", toJson(option.after)},          {"reason", option.reason}};
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

/// Of the device only the memory counts for what is asked; its profile is the reader's to choose.
Json toJson(const CostSettings& cost) {
  return {{"training", cost.isTraining},
          {"optimizer", toText(cost.optimizer)},
          {"budget_bytes", cost.memoryBudget ? Json(*cost.memoryBudget) : Json(nullptr)},
          {"slack_percent", cost.slackPercent}};
}

Json toJson(const Problem& problem) {
  Json pins = Json::array();
  for (const Pin& pin : problem.pins) pins.push_back(pin.text);
  return {{"ranks", problem.context.worldSize},
          {"menu", rules::toText(problem.context.menu)},
          {"sequence_parallel", rules::toText(problem.context.sequenceParallel)},
          {"pins", std::move(pins)},
          {"rules_off", problem.rulesOff},
          {"redistributable", problem.redistributable},
          {"cost", toJson(problem.cost)}};
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

/// A place in the document: the value and the path to it, for errors.
struct At {
  const Json* json = nullptr;
  std::string path;

  tl::unexpected<Error> wrong(std::string_view wanted) const {
    return fail(ErrorCode::BadInput, "{}: expected {}.", path, wanted);
  }
  Result<At> field(const char* name) const {
    const auto found = json->is_object() ? json->find(name) : json->end();
    if (!json->is_object() || found == json->end())
      return fail(ErrorCode::BadInput, "{}: the field `{}` is missing.", path, name);
    return At{&*found, path + "." + name};
  }
  At item(std::size_t index) const { return {&(*json)[index], fmt::format("{}[{}]", path, index)}; }
  Result<std::size_t> arraySize() const {
    if (!json->is_array()) return wrong("a list");
    return json->size();
  }
  Result<std::string> text() const {
    if (!json->is_string()) return wrong("a text");
    return json->get<std::string>();
  }
  Result<std::uint32_t> integer(std::uint32_t below) const {
    if (!json->is_number_unsigned() || json->get<std::uint64_t>() >= below)
      return wrong(fmt::format("an integer below {}", below));
    return json->get<std::uint32_t>();
  }
  Result<Placement> placement() const {
    CLEAVE_TRY(const std::string word, text());
    const auto parsed = Placement::parse(word);
    if (!parsed) return wrong(fmt::format("a placement such as R or S(1), not `{}`", word));
    return *parsed;
  }
};

template <std::size_t N>
Result<std::size_t> oneOf(const At& at, const std::array<std::string_view, N>& words) {
  CLEAVE_TRY(const std::string word, at.text());
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i] == word) return i;
  }
  return at.wrong(fmt::format("one of {}", fmt::join(words, ", ")));
}

Result<Placement> placementField(const At& at, const char* name) {
  CLEAVE_TRY(const At field, at.field(name));
  return field.placement();
}

Result<std::string> textField(const At& at, const char* name) {
  CLEAVE_TRY(const At field, at.field(name));
  return field.text();
}

Result<std::optional<CollectiveKind>> collectiveField(const At& at, const char* name) {
  CLEAVE_TRY(const At field, at.field(name));
  if (field.json->is_null()) return std::optional<CollectiveKind>();
  CLEAVE_TRY(const std::string word, field.text());
  for (CollectiveKind kind : kCollectives) {
    if (rules::toText(kind) == word) return std::optional(kind);
  }
  return field.wrong("a collective or null");
}

Result<StrategyOption> readOption(const At& at) {
  StrategyOption option;
  CLEAVE_TRY(const std::string name, textField(at, "name"));
  const auto strategy = rules::parseStrategy(name);
  if (!strategy) return at.wrong(fmt::format("a strategy, not `{}`", name));
  option.strategy = *strategy;
  CLEAVE_TRY(option.input, placementField(at, "input"));
  CLEAVE_TRY(option.weight, placementField(at, "weight"));
  CLEAVE_TRY(option.bias, placementField(at, "bias"));
  CLEAVE_TRY(option.result, placementField(at, "result"));
  CLEAVE_TRY(option.before, collectiveField(at, "before"));
  CLEAVE_TRY(option.after, collectiveField(at, "after"));
  CLEAVE_TRY(option.reason, textField(at, "reason"));
  if (at.json->contains("down")) {
    CLEAVE_TRY(option.down, placementField(at, "down"));
  }
  return option;
}

Result<std::vector<Placement>> placementsField(const At& at, const char* name) {
  CLEAVE_TRY(const At list, at.field(name));
  CLEAVE_TRY(const std::size_t count, list.arraySize());
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < count; ++i) {
    CLEAVE_TRY(Placement placement, list.item(i).placement());
    placements.push_back(std::move(placement));
  }
  return placements;
}

Result<std::vector<std::string>> textsField(const At& at, const char* name) {
  CLEAVE_TRY(const At list, at.field(name));
  CLEAVE_TRY(const std::size_t count, list.arraySize());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    CLEAVE_TRY(std::string text, list.item(i).text());
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<Choice> readChoice(const At& at) {
  Choice choice;
  CLEAVE_TRY(choice.results, placementsField(at, "results"));
  if (at.json->contains("computed_as")) {
    CLEAVE_TRY(choice.computedAs, placementsField(at, "computed_as"));
    if (choice.computedAs.size() != choice.results.size()) return at.wrong("as many computed_as as results");
  }
  CLEAVE_TRY(choice.reason, textField(at, "reason"));
  if (at.json->contains("strategy")) {
    CLEAVE_TRY(const At strategy, at.field("strategy"));
    CLEAVE_TRY(choice.strategy, readOption(strategy));
  }
  return choice;
}

Result<ConflictRecord> readConflict(const At& at, const Graph& graph) {
  ConflictRecord conflict;
  CLEAVE_TRY(const At node, at.field("node"));
  CLEAVE_TRY(const std::uint32_t nodeIndex, node.integer(static_cast<std::uint32_t>(graph.nodes.size())));
  conflict.node = NodeId(nodeIndex);
  CLEAVE_TRY(conflict.reason, textField(at, "reason"));
  CLEAVE_TRY(const At culprits, at.field("culprits"));
  CLEAVE_TRY(const std::size_t culpritCount, culprits.arraySize());
  for (std::size_t i = 0; i < culpritCount; ++i) {
    CLEAVE_TRY(const std::uint32_t value, culprits.item(i).integer(static_cast<std::uint32_t>(graph.values.size())));
    conflict.culprits.emplace_back(value);
  }
  CLEAVE_TRY(conflict.pins, textsField(at, "pins"));
  return conflict;
}

Result<CostSettings> readCost(const At& at) {
  CostSettings cost;
  CLEAVE_TRY(const At training, at.field("training"));
  if (!training.json->is_boolean()) return training.wrong("true or false");
  cost.isTraining = training.json->get<bool>();
  CLEAVE_TRY(const At optimizer, at.field("optimizer"));
  CLEAVE_TRY(const std::string name, optimizer.text());
  const auto parsed = parseOptimizer(name);
  if (!parsed) return optimizer.wrong("none, sgd, momentum or adamw");
  cost.optimizer = *parsed;
  CLEAVE_TRY(const At budget, at.field("budget_bytes"));
  if (!budget.json->is_null()) {
    if (!budget.json->is_number_integer() || budget.json->get<std::int64_t>() < 1) return budget.wrong("a number of bytes, or null");
    cost.memoryBudget = budget.json->get<std::int64_t>();
  }
  CLEAVE_TRY(const At slack, at.field("slack_percent"));
  const double percent = slack.json->is_number() ? slack.json->get<double>() : -1;
  if (!(percent >= 0 && percent <= kMostSlackPercent)) return slack.wrong(fmt::format("a number from 0 to {}", kMostSlackPercent));
  cost.slackPercent = percent;
  return cost;
}

Result<Problem> readProblem(const At& at, std::shared_ptr<const Graph> graph) {
  Problem problem;
  problem.graph = std::move(graph);
  CLEAVE_TRY(const At ranks, at.field("ranks"));
  CLEAVE_TRY(const std::uint32_t worldSize, ranks.integer(kMostRanks));
  if (worldSize == 0) return ranks.wrong("at least one rank");
  problem.context.worldSize = static_cast<int>(worldSize);
  CLEAVE_TRY(const At menu, at.field("menu"));
  CLEAVE_TRY(const std::size_t menuIndex, oneOf(menu, rules::kMenuWords));
  problem.context.menu = static_cast<rules::Menu>(menuIndex);
  CLEAVE_TRY(const At sequence, at.field("sequence_parallel"));
  CLEAVE_TRY(const std::size_t sequenceIndex, oneOf(sequence, rules::kSequenceParallelWords));
  problem.context.sequenceParallel = static_cast<rules::SequenceParallel>(sequenceIndex);
  CLEAVE_TRY(const At pins, at.field("pins"));
  CLEAVE_TRY(const std::size_t count, pins.arraySize());
  for (std::size_t i = 0; i < count; ++i) {
    CLEAVE_TRY(const std::string text, pins.item(i).text());
    CLEAVE_TRY(Pin pin, withContext(Pin::parse(text), pins.item(i).path));
    problem.pins.push_back(std::move(pin));
  }
  CLEAVE_TRY(problem.rulesOff, textsField(at, "rules_off"));
  CLEAVE_TRY(problem.redistributable, textsField(at, "redistributable"));
  if (at.json->contains("cost")) {  // older files lack it
    CLEAVE_TRY(const At cost, at.field("cost"));
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
  const Json document{{"graph", graph::toJson(*problem->graph)},
                      {"problem", toJson(*problem)},
                      {"choices", std::move(choices)},
                      {"conflicts", std::move(conflicts)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TraceTables> traceTablesFromJson(const std::string& text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return fail(ErrorCode::BadInput, "The header of the trace is not JSON: the file is damaged.");
  const At top{&document, "header"};
  TraceTables tables;
  CLEAVE_TRY(const At graphAt, top.field("graph"));
  CLEAVE_TRY(Graph graph, graph::graphFromJson(*graphAt.json));
  CLEAVE_TRY(const At problemAt, top.field("problem"));
  CLEAVE_TRY(Problem problem, readProblem(problemAt, std::make_shared<const Graph>(std::move(graph))));
  tables.problem = std::make_shared<const Problem>(std::move(problem));
  CLEAVE_TRY(const At choices, top.field("choices"));
  CLEAVE_TRY(const std::size_t choiceCount, choices.arraySize());
  for (std::size_t i = 0; i < choiceCount; ++i) {
    CLEAVE_TRY(Choice choice, readChoice(choices.item(i)));
    tables.choices.push_back(std::move(choice));
  }
  CLEAVE_TRY(const At conflicts, top.field("conflicts"));
  CLEAVE_TRY(const std::size_t conflictCount, conflicts.arraySize());
  for (std::size_t i = 0; i < conflictCount; ++i) {
    CLEAVE_TRY(ConflictRecord conflict, readConflict(conflicts.item(i), *tables.problem->graph));
    tables.conflicts.push_back(std::move(conflict));
  }
  return tables;
}

}  // namespace cleave::solve
