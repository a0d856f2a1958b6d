#include "pipeline/check_plan.h"

#include "pipeline/plan_again.h"
#include "plan/demands.h"
#include "solve/checker.h"

#include <unordered_map>

namespace cleave::pipeline {
namespace {

using graph::ValueId;

/// The plan's solution on a graph that was captured anew: placements by value name, forms of layers by layer name.
Result<solve::Solution> transferSolution(const plan::Plan& plan, const solve::Problem& problem) {
  const graph::Graph& graph = *problem.graph;
  std::unordered_map<std::string, ValueId> planned;
  for (ValueId value : idRange<ValueId>(plan.graph->values.size())) planned.emplace(plan.graph->value(value).name, value);
  solve::Solution solution;
  solution.strategies.resize(graph.nodes.size());
  for (ValueId value : idRange<ValueId>(graph.values.size())) {
    const std::string& name = graph.value(value).name;
    const auto found = planned.find(name);
    if (found == planned.end()) {
      return fail(ErrorCode::Negative, "The plan has no placement for {}: it was made from another model, or with other options.", name);
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
      return fail(ErrorCode::Negative, "Layer {} of the model is {}, which the plan does not have there.", next, graph::layerName(graph, node));
    }
    const rules::Strategy strategy = plan.layers[next++].strategy;
    solution.strategies[node.index()] = plan::formOf(problem, node, *layer, strategy, solution);
    if (!solution.strategies[node.index()]) {
      return fail(ErrorCode::Negative, "{} cannot take the strategy {} that the plan gives it: its input lies as {}.",
                  graph::layerName(graph, node), rules::toText(strategy), solution.of(layer->input).text());
    }
  }
  return solution;
}

void compareParameters(const plan::Plan& file, const plan::Plan& fresh, std::vector<std::string>& findings) {
  std::unordered_map<std::string, const plan::ParameterPlan*> known;
  for (const plan::ParameterPlan& parameter : fresh.parameters) known.emplace(parameter.name, &parameter);
  for (const plan::ParameterPlan& parameter : file.parameters) {
    const auto found = known.find(parameter.name);
    if (found == known.end()) {
      findings.push_back(fmt::format("Parameter {} is not one of the model's.", parameter.name));
    } else if (found->second->localShape != parameter.localShape || found->second->piecesByRank != parameter.piecesByRank) {
      findings.push_back(fmt::format("Parameter {}: the plan's shards are not what its placement {} makes of the checkpoint.", parameter.name,
                                     parameter.placement.text()));
    }
  }
  if (file.parameters.size() < fresh.parameters.size()) findings.push_back("Some of the model's parameters are missing from the plan.");
}

}  // namespace

Result<std::vector<std::string>> checkPlan(const plan::Plan& plan, const Progress& progress) {
  CLEAVE_TRY(const auto model, openModelOf(plan.model, progress));
  auto problem = std::make_shared<solve::Problem>();
  problem->graph = model->aten;
  problem->context = {plan.ranks, plan.menu, plan.sequenceParallel};
  problem->cost = plan.costSettings;
  CLEAVE_TRY_VOID(plan::addDemands(plan.demands, *problem));
  auto transferred = transferSolution(plan, *problem);
  if (!transferred && transferred.error().code == ErrorCode::Negative) return std::vector{transferred.error().message};
  if (!transferred) return tl::unexpected(transferred.error());

  std::vector<std::string> findings = solve::check(*problem, *transferred);
  if (!findings.empty()) return findings;
  auto solved = std::make_shared<Solved>();
  solved->problem = problem;
  solved->options.engine = plan.engine;
  solved->options.seed = plan.seed;
  solved->result.engine = plan.engine;
  solved->result.outcome = solve::Outcome::Solved;
  solved->result.solution = std::move(*transferred);
  CLEAVE_TRY(const auto fresh, planModel(model, solved));
  compareParameters(plan, *fresh, findings);
  if (graph::toText(*plan.program) != graph::toText(*fresh->program)) {
    findings.push_back("The rank program is not the one that the plan's placements lead to.");
  }
  return findings;
}

}  // namespace cleave::pipeline
