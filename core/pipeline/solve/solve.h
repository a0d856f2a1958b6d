#pragma once
/// The second stage: an engine chooses the split of a model, and the solution becomes a plan.
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solved.h"

#include <memory>

namespace cleave::pipeline {

Result<std::shared_ptr<const Solved>> solveModel(const std::shared_ptr<const Model>& model, const SolveOptions& options,
                                                 const Progress& progress = {});

/// Negative if there is no solution; the error names the causes.
Result<void> needSolution(const Solved& solved);
/// Makes the plan from the solution. Without a solution: the error of needSolution.
Result<std::shared_ptr<const plan::Plan>> planModel(const std::shared_ptr<const Model>& model,
                                                    const std::shared_ptr<const Solved>& solved,
                                                    const Progress& progress = {});

/// The problem that solveModel solves for these options.
Result<std::shared_ptr<const solve::Problem>> problemOf(const Model& model, const SolveOptions& options);

}  // namespace cleave::pipeline
