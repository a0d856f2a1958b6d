#include "pipeline/solve/plan_again.h"

#include "graph/states.h"
#include "pipeline/solve/solve.h"
#include "pipeline/source/planned_model.h"

#include <map>

namespace cleave::pipeline {
namespace {

/// Removes demands that match nothing in the graph.
void keepOnlyKnown(spec::PlanSpec& spec, const graph::Graph& graph) {
  std::erase_if(spec.pins, [&](const solve::Pin& pin) {
    const solve::PinTargets targets = solve::targetsOf(pin, graph);
    return targets.layers.empty() && targets.values.empty();
  });
  std::erase_if(spec.rulesOff,
                [&](const std::string& pattern) { return solve::nodesWithOperator(pattern, graph).empty(); });
}

/// The settings of `plan` for `model`. A model with a KV cache generates, also if `plan` is for training.
spec::PlanSpec specFor(const plan::Plan& plan, const Model& model) {
  spec::PlanSpec spec = plan.spec;
  if (model.info.input.cacheUse != graph::CacheUse::None) spec.cost.isTraining = false;
  return spec;
}

Result<void> pinTo(spec::PlanSpec& spec, const std::string& name, const rules::Placement& placement) {
  CLEAVE_TRY(solve::Pin pin, solve::Pin::parse(fmt::format("{}={}", name, placement.text())));
  spec.pins.push_back(std::move(pin));
  return {};
}

}  // namespace

Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress) {
  CLEAVE_TRY(const auto solved, solveModel(model, specFor(plan, *model), progress, {.records = false}));
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
  spec::PlanSpec spec = specFor(plan, *model);
  // Value names count within a graph, so the name of a value in `plan` may belong to another value here.
  std::erase_if(spec.pins, [](const solve::Pin& pin) { return pin.placement.has_value(); });
  spec.redistributable.clear();
  if (model->info.input.cacheUse == graph::CacheUse::Reads) {
    // A sequence of one position cannot be split. The pins of the weights below determine the strategies.
    spec.sequenceParallel = rules::SequenceParallel::Off;
    spec.pins.clear();
  }
  keepOnlyKnown(spec, *model->aten);
  for (const plan::ParameterShards& parameter : plan.parameters)
    CLEAVE_TRY_VOID(pinTo(spec, parameter.name, parameter.placement));
  std::map<std::string, graph::ValueId> given;
  for (const graph::State& state : graph::statesOf(*plan.graph)) given.emplace(state.name, state.present);
  for (const graph::State& state : graph::statesOf(*model->aten)) {
    const auto at = given.find(state.name);
    if (at == given.end() || !state.past.isValid()) continue;
    CLEAVE_TRY_VOID(pinTo(spec, model->aten->value(state.past).name, plan.solution->of(at->second)));
  }
  CLEAVE_TRY(const auto solved, solveModel(model, spec, progress, {.records = false}));
  return planModel(model, solved, progress);
}

}  // namespace cleave::pipeline
