#include "pipeline/solve/check_plan.h"

#include "base/quantities.h"
#include "base/version.h"
#include "pipeline/solve/devices.h"
#include "pipeline/solve/plan_again.h"
#include "pipeline/source/planned_model.h"
#include "plan/build/layer_strategy_of.h"
#include "plan/file/plan_fields.h"
#include "plan/file/plan_file.h"
#include "plan/plan.h"
#include "solve/checker.h"
#include "solve/problem/wording.h"
#include "solve/proof/certificate.h"

#include <nlohmann/json.hpp>

#include <array>
#include <unordered_map>

namespace cleave::pipeline {
namespace {

using graph::ValueId;

/// The plan's solution on a new capture of the graph: placements by value name, strategies of layers by layer name.
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
                  "The plan has no placement for {}: it is for another model, or has other options.", name);
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
      return fail(ErrorCode::Negative, "Layer {} of the model is {}, but the plan has another layer there.", next,
                  graph::layerName(graph, node));
    }
    const rules::Strategy strategy = plan.layers[next++].strategy;
    solution.strategies[node.index()] = plan::layerStrategyOf(problem, node, *layer, strategy, solution);
    if (!solution.strategies[node.index()]) {
      return fail(ErrorCode::Negative, "{} cannot have the plan's strategy {}: its input is {}.",
                  graph::layerName(graph, node), rules::toText(strategy), solution.of(layer->input).text());
    }
  }
  return solution;
}

/// Fields that come from the model's folder. Without it, the check cannot compute them.
constexpr std::array<std::string_view, 2> kFieldsOfTheFolder{"plan.warnings", "plan.values[*].origin"};
constexpr std::string_view kOfTheFolder =
    "the graph, the places of parameters in files, the origins of values, and the warnings";

/// The model according to the plan: its graph, and the tensors of its weight pieces.
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

/// The findings of the independent checker for the plan's solution.
Result<std::vector<std::string>> judge(const plan::Plan& plan, const solve::Problem& problem) {
  const auto transferred = transferSolution(plan, problem);
  if (transferred) return solve::check(problem, *transferred);
  if (transferred.error().code == ErrorCode::Negative) return std::vector{transferred.error().message};
  return tl::unexpected(transferred.error());
}

/// Checks the certificate against the rules and the cost model, and the plan's step time against the certificate.
Result<void> checkProof(const solve::Problem& problem, PlanCheck& check, const Progress& progress) {
  const plan::Plan& plan = *check.plan;
  if (plan.spec.engine != solve::Engine::Optimal || !plan.fastest) return {};
  if (!plan.certificate) {
    check.lacksCertificate = true;
    check.proof = "It has no certificate, so this check does not prove that no plan is faster.";
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
        fmt::format("Its certificate proves that the fastest plan takes {} {}, but the plan has {}.",
                    isTight ? "exactly" : "at least", solve::timeText(bound), solve::timeText(fastest)));
    return {};
  }
  const bool hasBudget = plan.certificate->byteWeight > 0;
  check.proof = fmt::format(
      "Its certificate is valid: no plan{} takes less than {} per step ({} choices of {} operators were checked).",
      hasBudget ? fmt::format(" within {} per rank", bytesText(budget)) : "", solve::timeText(bound),
      solve::withThousands(certified->transitions), solve::withThousands(plan.certificate->order.size()));
  if (bound < fastest)
    check.proof += fmt::format(" It does not prove that every plan within {} per rank takes at least {}.",
                               bytesText(budget), solve::timeText(fastest));
  return {};
}

/// Replaces the plan's copy of a bundled profile by this program's own.
Result<plan::Plan> withOwnDevice(plan::Plan plan) {
  CLEAVE_TRY(const auto profiles, deviceProfiles());
  for (const solve::DeviceProfile& profile : profiles) {
    if (profile.name == plan.spec.cost.profile.name) plan.spec.cost.profile = profile;
  }
  return plan;
}

std::string otherVersionInWords(const plan::Plan& plan) {
  if (plan.madeBy == version()) return {};
  const std::string maker = plan.madeBy.empty() ? "An unknown version of Cleave made it"
                                                : fmt::format("Cleave {} made it", quotedText(plan.madeBy));
  return fmt::format("{}, and this is {}: sentences and search effort were not compared.", maker, version());
}

/// Why a file may differ from the recomputed plan.
std::string_view causeInWords(plan::Seal seal) {
  switch (seal) {
    case plan::Seal::Broken: return "The file was changed after Cleave wrote it.";
    case plan::Seal::Intact: return "Another build of Cleave made it, or its seal was rewritten.";
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
  return fmt::format("{} is {} in the file and {} in the recomputed plan{}. {}", first.path, first.file, first.again,
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
        fmt::format("{} Without the model, these are not checked: {}.", model.error().message, kOfTheFolder);
    model = modelIn(plan);
  }
  if (const auto other = modelDifference(plan, **model); other && !other->empty()) {
    check.findings.push_back(modelDifferenceText(plan, *other));
    return check;
  }
  const solve::Problem problem = spec::problemOf((*model)->aten, plan.spec);
  CLEAVE_TRY(check.findings, judge(plan, problem));
  if (!check.findings.empty()) return check;
  CLEAVE_TRY_VOID(checkProof(problem, check, progress));
  if (!check.findings.empty()) return check;

  CLEAVE_TRY(const plan::Plan asked, withOwnDevice(plan));
  const auto again = planAgain(asked, *model, progress);
  if (!again && again.error().code == ErrorCode::Cancelled) return tl::unexpected(again.error());
  if (!again) {
    check.findings.push_back(fmt::format("The plan cannot be recomputed from its settings: {}", again.error().message));
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
