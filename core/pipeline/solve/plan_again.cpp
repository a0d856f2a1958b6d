#include "pipeline/solve/plan_again.h"

#include "graph/states.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/planned_model.h"
#include "plan/build/demands.h"

#include <map>

namespace cleave::pipeline {
namespace {

Result<SolveOptions> solveOptionsOf(const plan::Plan& plan) {
  solve::Problem demands;
  CLEAVE_TRY_VOID(plan::addDemands(plan.demands, demands));
  SolveOptions options;
  options.ranks = plan.ranks;
  options.engine = plan.engine;
  options.candidateSet = plan.candidateSet;
  options.sequenceParallel = plan.sequenceParallel;
  options.pins = std::move(demands.pins);
  options.rulesOff = std::move(demands.rulesOff);
  options.redistributable = std::move(demands.redistributable);
  options.cost = plan.costSettings;
  options.trainsWithDropout = plan.model.hasDropout;
  options.seed = plan.seed;
  options.record = false;
  return options;
}

/// Removes demands that match nothing in the graph.
void keepOnlyKnown(SolveOptions& options, const graph::Graph& graph) {
  std::erase_if(options.pins, [&](const solve::Pin& pin) {
    const solve::PinTargets targets = solve::targetsOf(pin, graph);
    return targets.layers.empty() && targets.values.empty();
  });
  std::erase_if(options.rulesOff,
                [&](const std::string& pattern) { return solve::nodesWithOperator(pattern, graph).empty(); });
}

Result<void> pinTo(SolveOptions& options, const std::string& name, const rules::Placement& placement) {
  CLEAVE_TRY(solve::Pin pin, solve::Pin::parse(fmt::format("{}={}", name, placement.text())));
  options.pins.push_back(std::move(pin));
  return {};
}

}  // namespace

Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress) {
  CLEAVE_TRY(const auto options, solveOptionsOf(plan));
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const plan::ModelInfo& wanted,
                                                    const Progress& progress) {
  CLEAVE_TRY(const auto model, openModelOf(wanted, progress));
  return planAgain(plan, model, progress);
}

Result<std::shared_ptr<const plan::Plan>> planOnSameWeights(const plan::Plan& plan,
                                                            const std::shared_ptr<const Model>& model,
                                                            const Progress& progress) {
  CLEAVE_TRY(auto options, solveOptionsOf(plan));
  // Value names count within a graph, so the name of a value in `plan` may belong to another value here.
  std::erase_if(options.pins, [](const solve::Pin& pin) { return pin.placement.has_value(); });
  options.redistributable.clear();
  if (model->info.cacheUse == graph::CacheUse::Reads) {
    // A sequence of one position cannot be split. The pins of the weights below determine the strategies.
    options.sequenceParallel = rules::SequenceParallel::Off;
    options.pins.clear();
  }
  keepOnlyKnown(options, *model->aten);
  for (const plan::ParameterShards& parameter : plan.parameters)
    CLEAVE_TRY_VOID(pinTo(options, parameter.name, parameter.placement));
  std::map<std::string, graph::ValueId> given;
  for (const graph::State& state : graph::statesOf(*plan.graph)) given.emplace(state.name, state.present);
  for (const graph::State& state : graph::statesOf(*model->aten)) {
    const auto at = given.find(state.name);
    if (at == given.end() || !state.past.isValid()) continue;
    CLEAVE_TRY_VOID(pinTo(options, model->aten->value(state.past).name, plan.solution->of(at->second)));
  }
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

}  // namespace cleave::pipeline
