#pragma once
/// The second stage: an engine chooses the split of a model, and the solution becomes a plan.
#include "base/progress.h"
#include "pipeline/model/model.h"
#include "pipeline/model/solved.h"
#include "solve/engine.h"
#include "solve/trace/recorder.h"

#include <functional>
#include <memory>

namespace cleave::pipeline {

/// How a solve is followed. It does not change the answer.
struct SolveContext {
  std::shared_ptr<solve::SolveCache> cache = nullptr;  ///< shared by the solves of one model; may be null
  bool records = true;                                 ///< keeps a trace
  solve::RecorderLimits limits = {};
  /// Called on the solving thread when the recording exists, so that a view can show it while it grows.
  std::function<void(std::shared_ptr<const solve::Trace>)> onTrace = nullptr;
};

Result<std::shared_ptr<const Solved>> solveModel(const std::shared_ptr<const Model>& model, const spec::PlanSpec& spec,
                                                 const Progress& progress = {}, const SolveContext& context = {});

/// Negative if there is no solution; the error names the causes.
Result<void> needSolution(const Solved& solved);
/// Makes the plan from the solution. Without a solution: the error of needSolution.
Result<std::shared_ptr<const plan::Plan>> planModel(const std::shared_ptr<const Model>& model,
                                                    const std::shared_ptr<const Solved>& solved,
                                                    const Progress& progress = {});

/// The problem that solveModel solves. BadUsage for demands that match nothing.
Result<std::shared_ptr<const solve::Problem>> problemOf(const Model& model, const spec::PlanSpec& spec);

}  // namespace cleave::pipeline
