#pragma once
/// Opens the model of a plan again, and reports its differences from the planned one.
#include "pipeline/model/model.h"
#include "pipeline/source/input_shape.h"

#include <optional>
#include <string>

namespace cleave::pipeline {

/// The model of a plan, captured with the plan's options. Wrong options are an error in the plan, so they are BadInput
/// and never BadUsage.
Result<std::shared_ptr<const Model>> openModelOf(const plan::ModelInfo& info, const Progress& progress = {});
/// The difference between a plan's model and `model`, which was captured with the plan's options: "its `lm_head.weight`
/// is f32[260,64], but f32[256,64] in the plan". nullopt: no difference. Empty: only operators differ, and another
/// version of Cleave made the plan: it may capture the same code differently.
std::optional<std::string> modelDifference(const plan::Plan& plan, const Model& model);
/// The model of a plan. BadInput if it differs from the planned one; the error has the difference and what to do.
Result<std::shared_ptr<const Model>> openSameModel(const plan::Plan& plan, const Progress& progress = {});
/// The text of that error.
std::string modelDifferenceText(const plan::Plan& plan, const std::string& modelDifference);
/// The same model with these inputs. A plan without a loss stays without it.
plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape);
/// The same model with the rows of all `replicas` together.
plan::ModelInfo withRowsOf(plan::ModelInfo info, int replicas);
/// "batch 2, sequence 16, a mask, no loss"; for an exported program "s70=16".
std::string inputsInWords(const plan::ModelInfo& info);

}  // namespace cleave::pipeline
