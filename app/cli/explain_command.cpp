#include "base/json.h"
#include "base/quantities.h"
#include "base/wildcard.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "pipeline/solve/over_budget.h"
#include "pipeline/solve/what_fits.h"
#include "plan/build/warnings.h"
#include "plan/text/gradient_text.h"
#include "plan/text/shares_text.h"
#include "settings/option_types.h"
#include "solve/explain/explain.h"
#include "solve/explain/remedy.h"

#include <nlohmann/json.hpp>

#include <regex>
#include <set>

namespace cleave::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What the module computes last; invalid: there is no such module, or it computes nothing.
graph::ValueId resultOfModule(const graph::Graph& graph, const std::string& path) {
  graph::ValueId result;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Call || !node.scope.isValid() || node.results.empty()) continue;
    const std::string& own = graph.scope(node.scope).path;
    if (own == path || own.starts_with(path + ".")) result = node.results.front();
  }
  return result;
}

/// Modules that match a pattern of a plan, "model.layers.*.self_attn" or "model.layers.{0-3}.self_attn"; empty if
/// `name` is not a pattern.
std::set<std::string> modulesLike(const graph::Graph& graph, const std::string& name) {
  static const std::regex kIndices(R"(\{[0-9,-]+\})");
  const std::string pattern = std::regex_replace(name, kIndices, "*");
  std::set<std::string> paths;
  if (pattern.find('*') == std::string::npos) return paths;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Call || !node.scope.isValid()) continue;
    const std::string& path = graph.scope(node.scope).path;
    if (matchesWildcard(pattern, path)) paths.insert(path);
  }
  return paths;
}

/// The value a user means: by its name, by the name of the layer whose result it is, or by that of a module.
Result<graph::ValueId> valueNamed(const graph::Graph& graph, const std::string& name) {
  if (const auto value = graph.findValue(name); value.isValid()) return value;
  for (graph::NodeId node : idRange<graph::NodeId>(graph.nodes.size())) {
    if (graph::layerShape(graph, node) && graph::layerName(graph, node) == name)
      return graph.node(node).results.front();
  }
  if (const auto result = resultOfModule(graph, name); result.isValid()) return result;
  const auto paths = modulesLike(graph, name);
  if (paths.size() == 1) return resultOfModule(graph, *paths.begin());
  if (!paths.empty()) {
    return fail(ErrorCode::BadUsage, "\"{}\" matches {} modules. Name one of them, such as {}.", name, paths.size(),
                *paths.begin());
  }
  // A pin that matches nothing names the nearest names; the same words serve here.
  CLEAVE_TRY(const auto pin, solve::Pin::parse(name + "=R"));
  solve::Problem problem;
  problem.graph = std::make_shared<const graph::Graph>(graph);
  problem.pins = {pin};
  const auto checked = problem.checkPins();
  std::string hint = checked ? "" : checked.error().message;
  const auto question = hint.find(" Did you mean");
  return fail(ErrorCode::BadUsage, "There is no value or layer \"{}\" in this model.{}", name,
              question == std::string::npos ? "" : hint.substr(question));
}

std::string figuresText(const solve::Figures& figures) {
  if (!figures.hasPlan) return "no plan";
  return fmt::format("{} of {} split, {} per rank, {} per step", figures.splitLayers,
                     counted(static_cast<std::int64_t>(figures.layers), "layer"), bytesText(figures.rankBytes),
                     solve::timeText(figures.femtoseconds));
}

Json figuresJson(const solve::Figures& figures) {
  if (!figures.hasPlan) return nullptr;
  return {{"split_layers", figures.splitLayers},
          {"layers", figures.layers},
          {"rank_bytes", figures.rankBytes},
          {"step_fs", jsonOf<Json>(figures.femtoseconds)}};
}

Json fitsJson(const pipeline::Fits& fits) {
  Json list = Json::array();
  for (const pipeline::Fit& fit : fits.found)
    list.push_back({{"change", fit.change},
                    {"flags", fit.flags},
                    {"rank_bytes", fit.rankBytes},
                    {"step_fs", jsonOf<Json>(fit.femtoseconds)}});
  return list;
}

Json notKnownJson(const pipeline::Fits& fits) {
  Json list = Json::array();
  for (const pipeline::NotKnown& open : fits.notKnown) list.push_back({{"change", open.change}, {"why", open.why}});
  return list;
}

Json coreJson(const solve::Core& core) {
  Json constraints = Json::array();
  for (const auto& constraint : core.constraints) {
    constraints.push_back({{"text", constraint.text},
                           {"lift", constraint.lift ? Json(*constraint.lift) : Json(nullptr)},
                           {"offer", constraint.offer ? Json(solve::toText(*constraint.offer)) : Json(nullptr)}});
  }
  return {{"irreducible", core.isIrreducible}, {"constraints", std::move(constraints)}};
}

std::string constraintText(const solve::Constraint& constraint) {
  return fmt::format("{}{}\n", constraint.text,
                     constraint.offer ? fmt::format(" ({} gives a plan)", solve::toText(*constraint.offer)) : "");
}

std::string coreText(const solve::Core& core) {
  if (core.constraints.empty()) return {};
  if (core.constraints.size() == 1) return constraintText(core.constraints.front());
  std::string text = core.isIrreducible ? "These constraints conflict, and each is needed for the conflict:\n"
                                        : "These constraints conflict (perhaps not all are needed: the search for "
                                          "the smallest set ended at its limit):\n";
  for (const auto& constraint : core.constraints) text += "  - " + constraintText(constraint);
  return text;
}

std::string_view toText(solve::WhyNotAnswer answer) {
  switch (answer) {
    case solve::WhyNotAnswer::IsSo: return "is_so";
    case solve::WhyNotAnswer::Impossible: return "impossible";
    case solve::WhyNotAnswer::Forbidden: return "forbidden";
    case solve::WhyNotAnswer::Costs: return "costs";
    case solve::WhyNotAnswer::Possible: return "possible";
    case solve::WhyNotAnswer::NotKnown: return "not_known";
  }
  return "";
}

struct ExplainCommand {
  PlanFlags flags;
  std::string value, placement, json;

  Result<int> run() {
    const Progress progress = consoleProgress();
    CLEAVE_TRY(PlanSettings asked, flags.read());
    flags.hint(asked);
    CLEAVE_TRY_VOID(resolveModel(asked.model, hub::Wanted::Config, progress));
    CLEAVE_TRY_VOID(refuseOverwriting({{"--json", json}}, asked.filesRead()));
    if (!placement.empty() && value.empty())
      return fail(ErrorCode::BadUsage, "--placement needs a value: name it with --value.");
    CLEAVE_TRY(const Planned planned, planModel(asked, false, progress));
    Json document{{"schema", "cleave.explain/2"}};
    std::string text;
    if (value.empty()) {
      CLEAVE_TRY_VOID(explainOutcome(planned, progress, text, document));
    } else {
      CLEAVE_TRY(const auto id, valueNamed(*planned.model->aten, value));
      if (!planned.plan) return tl::unexpected(planned.planError);
      CLEAVE_TRY_VOID(placement.empty() ? explainValue(planned, id, progress, text, document)
                                        : explainWhyNot(planned, id, progress, text, document));
    }
    endProgress();
    if (!json.empty()) CLEAVE_TRY_VOID(writeOutput(json, jsonText(document, 1) + "\n"));
    if (json != "-") CLEAVE_TRY_VOID(writeOutput("-", text));
    const bool isNo = !planned.plan || pipeline::exceedsAskedBudget(*planned.plan);
    return value.empty() && isNo ? exitCode(ErrorCode::Negative) : 0;
  }

 private:
  /// How much of the model is split, then what is not and why. Warnings come first if heads do not divide.
  static std::string replicatedText(const plan::Plan& plan) {
    const bool headsDivide = plan::indivisibleHeads(plan.shares).empty();
    std::string text = "Plan found.\n";
    std::string shares = fmt::format("  {}\n", plan::toText(plan.shares));
    if (const std::string largest = plan::largestWholeText(plan.shares); !largest.empty())
      shares += fmt::format("  {}\n", largest);
    if (headsDivide) text += shares;
    for (const std::string& warning : plan.warnings) text += fmt::format("  {}\n", warning);
    if (!headsDivide) text += shares;
    for (const std::string& sentence : plan::replicatedByChoice(plan)) text += fmt::format("  {}\n", sentence);
    return text;
  }

  static Result<void> explainWhatFits(const Planned& planned, const Progress& progress, std::string& text,
                                      Json& document) {
    CLEAVE_TRY(const auto fits, pipeline::whatFits(*planned.model, *planned.solved, progress));
    text += pipeline::toText(fits);
    document["fits"] = fitsJson(fits);
    document["too_large"] = fits.tooLarge;
    document["not_known"] = notKnownJson(fits);
    return {};
  }

  /// Why no plan exists, or what stays replicated; and the changes that help.
  static Result<void> explainOutcome(const Planned& planned, const Progress& progress, std::string& text,
                                     Json& document) {
    const solve::Problem& problem = *planned.solved->problem;
    document["solved"] = planned.plan != nullptr;
    document["outcome"] = planned.plan ? "solution" : planned.solved->result.isProved ? "none" : "not_known";
    if (planned.plan) {
      text += replicatedText(*planned.plan);
      document["warnings"] = planned.plan->warnings;
      if (pipeline::exceedsAskedBudget(*planned.plan))
        CLEAVE_TRY_VOID(explainWhatFits(planned, progress, text, document));
    } else {
      const solve::SolveResult& result = planned.solved->result;
      text += fmt::format(
          "{} for {}. {}",
          result.isProved ? "No plan exists" : "No plan found. The search stopped at its limit, so one may still exist",
          counted(problem.context.worldSize, "rank"), coreText(result.core));
      document["core"] = coreJson(result.core);
      if (pipeline::isOverBudget(result)) {
        const std::string bytes = pipeline::overBudgetText(result);
        if (!bytes.empty()) text += bytes + "\n";
        document["over_budget"] = bytes;
        CLEAVE_TRY_VOID(explainWhatFits(planned, progress, text, document));
      }
    }
    CLEAVE_TRY(const auto remedies,
               solve::remediesFor(problem, planned.solved->result, planned.solved->spec.engine, nullptr, progress));
    Json list = Json::array();
    if (!remedies.empty()) text += fmt::format("Changes that help (now: {}):\n", figuresText(remedies.front().before));
    for (std::size_t i = 0; i < remedies.size(); ++i) {
      text += fmt::format("  {}. {}\n     then: {}\n", i + 1, remedies[i].text, figuresText(remedies[i].after));
      list.push_back({{"change", solve::toText(remedies[i].change)},
                      {"text", remedies[i].text},
                      {"before", figuresJson(remedies[i].before)},
                      {"after", figuresJson(remedies[i].after)}});
    }
    document["remedies"] = std::move(list);
    return {};
  }

  static Result<void> explainValue(const Planned& planned, graph::ValueId id, const Progress& progress,
                                   std::string& text, Json& document) {
    const solve::Problem& problem = *planned.solved->problem;
    const solve::Solution& solution = *planned.solved->result.solution;
    const graph::Graph& graph = *problem.graph;
    document["value"] = graph.value(id).name;
    document["placement"] = solution.of(id).text();
    text +=
        fmt::format("{} {} is {}\n", graph.value(id).name, graph::toText(graph.value(id).type), solution.of(id).text());
    if (const std::string& source = graph.sourceOf(graph.node(graph.value(id).producer)); !source.empty())
      text += fmt::format("  {}\n", source);
    Json chain = Json::array();
    for (const solve::WhyLink& link : solve::why(problem, solution, planned.solved->result.engine, id)) {
      const std::string sentence = solve::plainText(link.sentence);
      text += fmt::format("  {} {}\n", link.isFree ? "*" : "-", sentence);
      for (const std::string& alternative : link.alternatives) text += fmt::format("      or {}\n", alternative);
      chain.push_back({{"value", graph.value(link.value).name},
                       {"text", sentence},
                       {"free", link.isFree},
                       {"alternatives", link.alternatives}});
    }
    document["why"] = std::move(chain);
    if (const std::string gradient = plan::gradientText(*planned.plan, id); !gradient.empty()) {
      text += fmt::format("  gradient: {}\n", gradient);
      document["gradient"] = gradient;
    }
    const auto& optimum = planned.solved->result.optimum;
    if (!optimum) return {};
    CLEAVE_TRY(const auto regrets, optimum->regrets(id, progress));
    Json list = Json::array();
    for (const solve::Regret& regret : regrets) {
      const std::string name = regret.name() + (regret.strategy ? fmt::format(" ({})", regret.placement.text()) : "");
      if (!regret.isChosen) text += fmt::format("  {}: {}\n", name, regretText(regret));
      list.push_back(
          {{"placement", regret.placement.text()},
           {"strategy", regret.strategy ? Json(rules::toText(*regret.strategy)) : Json(nullptr)},
           {"copied", regret.isCopied},
           {"chosen", regret.isChosen},
           {"extra_fs", regret.extraFs ? jsonOf<Json>(*regret.extraFs) : Json(nullptr)},
           {"fastest_extra_fs", regret.fastestExtraFs ? jsonOf<Json>(*regret.fastestExtraFs) : Json(nullptr)},
           {"proved", regret.isProved},
           {"extra_bytes", regret.extraBytes ? Json(*regret.extraBytes) : Json(nullptr)}});
    }
    document["regrets"] = std::move(list);
    return {};
  }

  static std::string regretText(const solve::Regret& regret) {
    if (!regret.extraFs) {
      return regret.isProved ? "every plan with it is over the memory budget"
                             : "the search stopped before it found a plan with it within the memory budget";
    }
    const std::int64_t bytes = regret.extraBytes.value_or(0);
    const bool isPassedOver = regret.fastestExtraFs && *regret.fastestExtraFs != *regret.extraFs;
    const std::string fastest =
        isPassedOver ? fmt::format("; the fastest with it takes {}", solve::longerText(*regret.fastestExtraFs)) : "";
    return fmt::format("the best plan with it{} takes {} and {}{}", regret.isProved ? "" : " that was found",
                       solve::longerText(*regret.extraFs), solve::needsText(bytes), fastest);
  }

  Result<void> explainWhyNot(const Planned& planned, graph::ValueId id, const Progress& progress, std::string& text,
                             Json& document) const {
    const solve::Problem& problem = *planned.solved->problem;
    const solve::Solution& solution = *planned.solved->result.solution;
    const solve::Engine engine = planned.solved->spec.engine;
    const auto parsed = rules::Placement::parse(placement);
    const auto strategy = rules::parseStrategy(placement);
    if (!parsed && !strategy) {
      return fail(ErrorCode::BadUsage,
                  "--placement is \"{}\": write a placement such as R or S(1), or a layer's strategy such as row or "
                  "replicated.",
                  placement);
    }
    CLEAVE_TRY(const solve::WhyNot answer,
               parsed
                   ? solve::whyNot(problem, solution, engine, id, *parsed, progress)
                   : solve::whyNot(problem, solution, engine, problem.graph->value(id).producer, *strategy, progress));
    Json sentences = Json::array();
    for (const solve::Sentence& sentence : answer.sentences) {
      text += solve::plainText(sentence) + "\n";
      sentences.push_back(solve::plainText(sentence));
    }
    document["value"] = problem.graph->value(id).name;
    document["placement"] = placement;
    document["answer"] = toText(answer.answer);
    document["sentences"] = std::move(sentences);
    document["core"] = coreJson(answer.core);
    document["extra_fs"] = answer.extraFs ? jsonOf<Json>(*answer.extraFs) : Json(nullptr);
    document["extra_bytes"] = answer.extraBytes ? Json(*answer.extraBytes) : Json(nullptr);
    Json elsewhere = Json::array();
    for (const solve::Change& change : answer.elsewhere) elsewhere.push_back(solve::toText(change));
    document["elsewhere"] = std::move(elsewhere);
    document["pin"] = answer.pin ? Json(*answer.pin) : Json(nullptr);
    return {};
  }
};

}  // namespace

void addExplainCommand(CLI::App& app, Chosen& chosen) {
  auto state = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explain why a tensor is placed as it is, why not otherwise, or why no plan exists");
  state->flags.addTo(*command);
  command->add_option("--value", state->value,
                      "Value (linear_3), layer (model.layers.0.mlp.up_proj) or module (model.norm)");
  command->add_option("--placement", state->placement, "Explain why it is not this placement (S(1)) or strategy (row)");
  command->add_option("--json", state->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->callback([state, &chosen] {
    const auto result = state->run();
    chosen.exitCode = result ? *result : report(result.error());
  });
}

}  // namespace cleave::cli
