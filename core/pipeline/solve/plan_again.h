#pragma once
/// Makes a plan again for its model, for other inputs, or on the same weights.
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "plan/plan.h"

#include <memory>

namespace cleave::pipeline {

/// A plan for `model` with the settings of `plan`: its engine, candidate set, demands, costs and seed.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress = {});
/// The same for the plan's model with other inputs.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const plan::ModelInfo& wanted,
                                                    const Progress& progress = {});
/// A plan for `model`, another capture of the model of `plan`, with the same splits of all parameters and states
/// (graph/states.h): both plans can run in the same processes on the same weights. Demands of `plan` that match nothing
/// in `model` are dropped. Negative if `model` has no plan with these splits.
Result<std::shared_ptr<const plan::Plan>> planOnSameWeights(const plan::Plan& plan,
                                                            const std::shared_ptr<const Model>& model,
                                                            const Progress& progress = {});

}  // namespace cleave::pipeline
