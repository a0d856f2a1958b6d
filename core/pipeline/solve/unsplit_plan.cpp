#include "pipeline/solve/unsplit_plan.h"

#include "graph/reordered_sums.h"
#include "pipeline/solve/solve.h"
#include "program/rank_program.h"

#include <algorithm>

namespace cleave::pipeline {

Result<std::shared_ptr<const plan::Plan>> unsplitPlan(const std::shared_ptr<const Model>& model,
                                                      const plan::Plan& split, const Progress& progress) {
  spec::PlanSpec spec;
  spec.ranks = 1;
  spec.seed = split.spec.seed;
  spec.cost.isTraining = split.spec.cost.isTraining;
  spec.cost.optimizer = split.spec.cost.optimizer;
  spec.cost.memoryBudget = program::kMaxSize;  // it runs on this machine, so the profile's memory does not apply
  CLEAVE_TRY(const auto solved, solveModel(model, spec, progress, {.records = false}));
  return planModel(model, solved, progress);
}

int reorderedParts(const plan::Plan& split, int again) { return std::max(2, split.spec.ranks) + again; }

Result<std::shared_ptr<const plan::Plan>> reorderedPlan(const std::shared_ptr<const Model>& model,
                                                        const plan::Plan& split, const Progress& progress, int again) {
  auto reordered = std::make_shared<Model>(*model);
  const int parts = reorderedParts(split, again);
  reordered->aten = std::make_shared<const graph::Graph>(graph::withReorderedSums(*model->aten, parts));
  return unsplitPlan(reordered, split, progress);
}

}  // namespace cleave::pipeline
