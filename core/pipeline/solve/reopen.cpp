#include "pipeline/solve/reopen.h"

#include "pipeline/source/plan_file.h"
#include "pipeline/source/planned_model.h"

namespace cleave::pipeline {
namespace {

/// A model with the plan's graph and no weights, for viewing only.
std::shared_ptr<Model> modelOfPlan(const plan::Plan& plan) {
  auto model = std::make_shared<Model>();
  model->info = plan.model;
  model->captured = model->aten = plan.graph;
  return model;
}

}  // namespace

Result<ReopenedPlan> reopenPlan(const fs::path& file, const Progress& progress) {
  ReopenedPlan reopened;
  CLEAVE_TRY(reopened.plan, readPlanFile(file));
  const plan::Plan& plan = *reopened.plan;
  const auto opened = openModelOf(plan.model, progress);
  if (progress.cancelled()) return progress.cancelledError("opening " + file.string());
  // If the new capture is the same graph, its value ids are those of the plan.
  const auto other = opened ? modelDifference(plan, **opened) : std::optional(std::string());
  reopened.model = other ? modelOfPlan(plan) : *opened;
  if (other) {
    reopened.whyNotRun = !opened ? opened.error().message : other->empty() ? "" : modelDifferenceText(plan, *other);
    reopened.note = fmt::format("The plan is shown without its model: {}",
                                reopened.whyNotRun.empty()
                                    ? "this version of Cleave captures it differently from the one that made the plan."
                                    : reopened.whyNotRun);
  }
  auto problem = std::make_shared<solve::Problem>(spec::problemOf(reopened.model->aten, plan.spec));
  auto solved = std::make_shared<Solved>();
  solved->result.outcome = solve::Outcome::Solved;
  solved->result.engine = plan.spec.engine;
  solved->result.solution = *plan.solution;
  solved->result.stats = plan.search;
  solved->spec = plan.spec;
  if (plan.spec.candidateSet == spec::defaultCandidateSet(plan.spec.engine)) solved->spec.candidateSet.reset();
  solved->problem = std::move(problem);
  reopened.solved = std::move(solved);
  return reopened;
}

}  // namespace cleave::pipeline
