#include "pipeline/solve/unsplit_plan.h"

#include "graph/reordered_sums.h"
#include "pipeline/solve/solve.h"
#include "program/rank_program.h"

#include <algorithm>

namespace cleave::pipeline {

Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const std::shared_ptr<const Model>& model,
                                                      const plan::Plan& split, const Progress& progress) {
  SolveOptions options;
  options.ranks = 1;
  options.seed = split.seed;
  options.record = false;
  options.cost.isTraining = split.costSettings.isTraining;
  options.cost.optimizer = split.costSettings.optimizer;
  options.cost.memoryBudget = program::kMaxSize;  // it runs on this machine, so the profile's memory does not apply
  CLEAVE_TRY(const auto solved, solveModel(model, options, progress));
  return planModel(model, solved, progress);
}

int reorderedParts(const plan::Plan& split, int again) { return std::max(2, split.ranks) + again; }

Result<std::shared_ptr<const plan::Plan>> reorderedPlan(const std::shared_ptr<const Model>& model,
                                                        const plan::Plan& split, const Progress& progress, int again) {
  auto reordered = std::make_shared<Model>(*model);
  const int parts = reorderedParts(split, again);
  reordered->aten = std::make_shared<const graph::Graph>(graph::withReorderedSums(*model->aten, parts));
  return unsplitPlan(reordered, split, progress);
}

}  // namespace cleave::pipeline
