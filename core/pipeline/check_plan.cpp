#include "pipeline/check_plan.h"

#include "base/quantities.h"
#include "base/version.h"
#include "pipeline/plan_again.h"
#include "pipeline/solve.h"
#include "plan/demands.h"
#include "plan/plan.h"
#include "plan/plan_fields.h"
#include "solve/checker.h"
#include "solve/problem/wording.h"
#include "solve/proof/certificate.h"

#include <nlohmann/json.hpp>

#include <array>
#include <unordered_map>

namespace cleave::pipeline {
namespace {

using graph::ValueId;

/// The plan's solution on a graph that was captured anew: placements by value name, strategies of layers by layer name.
Result<solve::Solution> transferSolution(const plan::Plan& plan, const solve::Problem& problem) {
  const graph::Graph& graph = *problem.graph;
  std::unordered_map<std::string, ValueId> planned;
  for (ValueId value : idRange<ValueId>(plan.graph->values.size()))
    planned.emplace(plan.graph->value(value).name, value);
  solve::Solution solution;
  solution.strategies.resize(graph.nodes.size());
  for (ValueId value : idRange<ValueId>(graph.values.size())) {
    const std::string& name = graph.value(value).name;
    const auto found = planned.find(name);
    if (found == planned.end()) {
      return fail(ErrorCode::Negative,
                  "The plan has no placement for {}: it was made from another model, or with other options.", name);
    }
    solution.placements.push_back(plan.solution->of(found->second));
    const auto computed = plan.solution->computedAs.find(found->second);
    if (computed != plan.solution->computedAs.end()) solution.computedAs.emplace(value, computed->second);
  }
  std::size_t next = 0;
  for (graph::NodeId node : idRange<graph::NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, node);
    if (!layer) continue;
    if (next >= plan.layers.size() || plan.layers[next].name != graph::layerName(graph, node)) {
      return fail(ErrorCode::Negative, "Layer {} of the model is {}, which the plan does not have there.", next,
                  graph::layerName(graph, node));
    }
    const rules::Strategy strategy = plan.layers[next++].strategy;
    solution.strategies[node.index()] = plan::layerStrategyOf(problem, node, *layer, strategy, solution);
    if (!solution.strategies[node.index()]) {
      return fail(ErrorCode::Negative, "{} cannot take the strategy {} that the plan gives it: its input is {}.",
                  graph::layerName(graph, node), rules::toText(strategy), solution.of(layer->input).text());
    }
  }
  return solution;
}

/// Only the model's folder knows these: without it they are as the file has them, or not there.
constexpr std::array<std::string_view, 2> kFieldsOfTheFolder{"plan.warnings", "plan.values[*].origin"};
constexpr std::string_view kOfTheFolder =
    "whether the graph is the model's, where the parameters are in its files, what values were captured from, and the "
    "warnings";

/// What the plan itself says of its model: its graph, and the tensors that its pieces come from.
std::shared_ptr<const Model> modelIn(const plan::Plan& plan) {
  auto model = std::make_shared<Model>();
  model->info = plan.model;
  model->aten = plan.graph;
  for (const program::ParameterShards& parameter : plan.parameters) {
    for (const auto& pieces : parameter.piecesByRank) {
      if (pieces.empty() || pieces.front().file.empty()) continue;
      const program::ShardPiece& piece = pieces.front();
      model->folder.tensors.emplace(piece.tensor,
                                    formats::WeightSource{{parameter.storedDtype, parameter.type.shape}, piece.file});
    }
  }
  return model;
}

/// What the plan is an answer to, on this graph.
Result<solve::Problem> problemIn(const plan::Plan& plan, const Model& model) {
  solve::Problem problem;
  problem.graph = model.aten;
  problem.context = {plan.ranks, plan.candidateSet, plan.sequenceParallel};
  problem.cost = plan.costSettings;
  CLEAVE_TRY_VOID(plan::addDemands(plan.demands, problem));
  return problem;
}

/// What the independent checker says of the plan's solution.
Result<std::vector<std::string>> judge(const plan::Plan& plan, const solve::Problem& problem) {
  const auto transferred = transferSolution(plan, problem);
  if (transferred) return solve::check(problem, *transferred);
  if (transferred.error().code == ErrorCode::Negative) return std::vector{transferred.error().message};
  return tl::unexpected(transferred.error());
}

/// Holds the certificate against rules and cost model, and what the plan says of its proof against the certificate.
Result<void> checkProof(const solve::Problem& problem, PlanCheck& check, const Progress& progress) {
  const plan::Plan& plan = *check.plan;
  if (plan.engine != solve::Engine::Optimal || !plan.fastest) return {};
  if (!plan.certificate) {
    check.lacksCertificate = true;
    check.proof = "It has no certificate, so nothing but the search that made it says that no plan is faster.";
    return {};
  }
  const auto certified = solve::verify(problem, *plan.certificate, progress);
  if (!certified) {
    if (certified.error().code == ErrorCode::Cancelled) return tl::unexpected(certified.error());
    check.findings.push_back(certified.error().message);
    return {};
  }
  const Femtoseconds fastest = plan.fastest->femtoseconds, bound = certified->lowerBound;
  const std::int64_t budget = problem.cost.budgetBytes();
  const bool isTight = certified->bytesAtBound.value_or(budget + 1) <= budget;
  if (bound > fastest || (isTight && bound < fastest)) {
    check.findings.push_back(
        fmt::format("Its certificate proves that the fastest plan takes {} {}, and the plan says that it takes {}.",
                    isTight ? "exactly" : "at least", solve::timeText(bound), solve::timeText(fastest)));
    return {};
  }
  const bool hasBudget = plan.certificate->byteWeight > 0;
  check.proof = fmt::format(
      "Its certificate holds: no plan{} takes less than {} per step ({} choices of {} operators were looked at).",
      hasBudget ? fmt::format(" within {} per rank", bytesText(budget)) : "", solve::timeText(bound),
      solve::withThousands(certified->transitions), solve::withThousands(plan.certificate->order.size()));
  if (bound < fastest)
    check.proof += fmt::format(" That none within {} per rank takes less than {} is not part of the proof.",
                               bytesText(budget), solve::timeText(fastest));
  return {};
}

/// A profile that this program has is its own, whatever the plan says of it.
Result<plan::Plan> withOwnDevice(plan::Plan plan) {
  CLEAVE_TRY(const auto profiles, deviceProfiles());
  for (const solve::DeviceProfile& profile : profiles) {
    if (profile.name == plan.costSettings.profile.name) plan.costSettings.profile = profile;
  }
  return plan;
}

std::string otherVersionInWords(const plan::Plan& plan) {
  if (plan.madeBy == version()) return {};
  const std::string maker = plan.madeBy.empty() ? "It does not say which version of Cleave made it"
                                                : fmt::format("Cleave {} made it", quotedText(plan.madeBy));
  return fmt::format("{}, and this is {}: its sentences and the effort of its search were not compared.", maker,
                     version());
}

/// Why a file may differ from the plan made again.
std::string_view causeInWords(plan::Seal seal) {
  switch (seal) {
    case plan::Seal::Broken: return "The file was changed after Cleave wrote it.";
    case plan::Seal::Intact: return "Another build of Cleave made it, or its seal was written anew.";
    case plan::Seal::None: break;
  }
  return "The file was changed, or an earlier version of Cleave made it.";
}

std::string differenceInWords(const plan::Plan& plan, const std::vector<plan::FieldDifference>& differences) {
  const plan::FieldDifference& first = differences.front();
  const std::size_t others = differences.size() - 1;
  const std::string more =
      others == 0
          ? ""
          : fmt::format(", and {}", counted(std::ssize(differences) - 1, "more field differs", "more fields differ"));
  return fmt::format("{} is {} in the file and {} in the plan made again{}. {}", first.path, first.file, first.again,
                     more, causeInWords(plan.seal));
}

}  // namespace

Result<PlanCheck> checkPlan(std::string_view text, const Progress& progress) {
  CLEAVE_TRY(plan::Plan read, plan::planFromJson(text));
  PlanCheck check;
  check.plan = std::make_shared<const plan::Plan>(std::move(read));
  const plan::Plan& plan = *check.plan;
  auto model = openModelOf(plan.model, progress);
  if (!model && model.error().code == ErrorCode::Cancelled) return tl::unexpected(model.error());
  if (!model) {
    check.unchecked =
        fmt::format("{} Without its model it could not be checked {}.", model.error().message, kOfTheFolder);
    model = modelIn(plan);
  }
  if (const auto other = whatIsOther(plan, **model); other && !other->empty()) {
    check.findings.push_back(otherModelText(plan, *other));
    return check;
  }
  CLEAVE_TRY(const solve::Problem problem, problemIn(plan, **model));
  CLEAVE_TRY(check.findings, judge(plan, problem));
  if (!check.findings.empty()) return check;
  CLEAVE_TRY_VOID(checkProof(problem, check, progress));
  if (!check.findings.empty()) return check;

  CLEAVE_TRY(const plan::Plan asked, withOwnDevice(plan));
  const auto again = planAgain(asked, *model, progress);
  if (!again && again.error().code == ErrorCode::Cancelled) return tl::unexpected(again.error());
  if (!again) {
    check.findings.push_back(
        fmt::format("With the plan's own settings it cannot be made again: {}", again.error().message));
    return check;
  }
  CLEAVE_TRY(const nlohmann::json file, parseJson(text, "The plan", program::kPlanLimits));
  check.otherVersion = otherVersionInWords(plan);
  std::vector<std::string_view> leftOut(plan::kMeasuredFields.begin(), plan::kMeasuredFields.end());
  if (!check.otherVersion.empty())
    leftOut.insert(leftOut.end(), plan::kFieldsOfTheVersion.begin(), plan::kFieldsOfTheVersion.end());
  if (!check.unchecked.empty()) leftOut.insert(leftOut.end(), kFieldsOfTheFolder.begin(), kFieldsOfTheFolder.end());
  if (check.lacksCertificate) leftOut.push_back("plan.certificate");
  const auto differences = plan::differingFields(file, nlohmann::ordered_json::parse(plan::toJson(**again)), leftOut);
  if (!differences.empty()) {
    check.findings.push_back(differenceInWords(plan, differences));
  } else if (plan.seal == plan::Seal::Broken && check.unchecked.empty()) {
    check.findings.emplace_back(
        "The file was changed after Cleave wrote it, in a field that this check does not compare.");
  }
  return check;
}

}  // namespace cleave::pipeline
