#include "pipeline/solve/plan_weights.h"

#include "pipeline/solve/plan_again.h"
#include "pipeline/source/hub_model.h"

namespace cleave::pipeline {

Result<std::shared_ptr<const plan::Plan>> fetchPlanWeights(std::shared_ptr<const plan::Plan> plan,
                                                           const hub::Watcher& watcher, const Progress& progress) {
  if (plan->model.isExported || !isHubSnapshot(plan->model.source)) return plan;
  plan::ModelInfo model = plan->model;
  if (lacksHubWeights(model.source)) {
    CLEAVE_TRY(model.source, fetchHubWeights(model.source, watcher, progress));
  }
  if (!plan->model.hasWeights) return planAgain(*plan, model, progress);
  if (model.source == plan->model.source) return plan;
  auto moved = std::make_shared<plan::Plan>(*plan);
  moved->model.source = model.source;
  return moved;
}

}  // namespace cleave::pipeline
