#pragma once
/// From a plan back to its model, and to a plan for other inputs.
#include "pipeline/open.h"

namespace cleave::pipeline {

/// The model of a plan, captured as the plan says. What is wrong with it is the plan's fault: never BadUsage.
Result<std::shared_ptr<const Model>> openModelOf(const plan::ModelInfo& info, const Progress& progress = {});
/// The same model with these inputs; a loss that was left out stays out.
plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape);
/// "batch 2, sequence 16, a mask, no loss"
std::string inputsInWords(const plan::ModelInfo& info);
/// A plan for `model` made as `plan` was: with its engine, candidate set, demands, costs and seed.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress = {});
/// The same for the plan's model with other inputs.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const plan::ModelInfo& wanted,
                                                    const Progress& progress = {});

}  // namespace cleave::pipeline
