#pragma once
/// From a plan back to its model, and to a plan for other inputs.
#include "pipeline/open.h"

namespace cleave::pipeline {

/// The model of a plan, captured as the plan says. What is wrong with it is the plan's fault: never BadUsage.
Result<std::shared_ptr<const Model>> openModelOf(const plan::ModelInfo& info, const Progress& progress = {});
/// What sets a plan's model apart from `model`, which was captured as the plan says: "its `lm_head.weight` is
/// f32[260,64], the plan's f32[256,64]". nullopt: nothing. Empty: only the operators, of a plan of another version of
/// Cleave, which may record the same code otherwise.
std::optional<std::string> whatIsOther(const plan::Plan& plan, const Model& model);
/// The model of a plan if it still is the plan's. BadInput says what is other, and what to do.
Result<std::shared_ptr<const Model>> openSameModel(const plan::Plan& plan, const Progress& progress = {});
/// The sentence of that error.
std::string otherModelText(const plan::Plan& plan, const std::string& whatIsOther);
/// The same model with these inputs; a loss that was left out stays out.
plan::ModelInfo withInputs(plan::ModelInfo info, const InputShape& shape);
/// The same model with the rows that so many replicas of it have together.
plan::ModelInfo withRowsOf(plan::ModelInfo info, int replicas);
/// "batch 2, sequence 16, a mask, no loss"; of an exported program "s70=16", and what all have in common otherwise
std::string inputsInWords(const plan::ModelInfo& info);
/// A plan for `model` made as `plan` was: with its engine, candidate set, demands, costs and seed.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const std::shared_ptr<const Model>& model,
                                                    const Progress& progress = {});
/// The same for the plan's model with other inputs.
Result<std::shared_ptr<const plan::Plan>> planAgain(const plan::Plan& plan, const plan::ModelInfo& wanted,
                                                    const Progress& progress = {});
/// A plan for `model`, the model of `plan` captured otherwise, that splits every parameter as `plan` does and takes
/// over what `plan` carries on (graph/states.h) as it lies there: both run in the same processes, on the same weights.
/// Demands of `plan` that speak of nothing in `model` are left out. Negative where `model` cannot be computed so.
Result<std::shared_ptr<const plan::Plan>> planOnSameWeights(const plan::Plan& plan,
                                                            const std::shared_ptr<const Model>& model,
                                                            const Progress& progress = {});
/// The model on one rank with its sums in another order (graph/reordered_sums.h), in `reorderedParts` parts: the ruler
/// for a comparison with `unsplitPlan`.
Result<std::shared_ptr<const plan::Plan>> reorderedPlan(const std::shared_ptr<const Model>& model,
                                                        const plan::Plan& split, const Progress& progress = {},
                                                        int again = 0);
/// max(2, ranks of `split`) + `again`, the number of earlier measurements.
int reorderedParts(const plan::Plan& split, int again);
/// The model on one rank: what a split run is compared with.
Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const std::shared_ptr<const Model>& model,
                                                      const plan::Plan& split, const Progress& progress = {});

}  // namespace cleave::pipeline
