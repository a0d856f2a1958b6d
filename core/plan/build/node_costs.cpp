#include "plan/build/node_costs.h"

#include "solve/cost/cost_model.h"

namespace cleave::plan {

namespace {

solve::Problem problemOf(const Plan& plan) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {plan.spec.ranks, plan.spec.candidates(), plan.spec.sequenceParallel};
  problem.cost = plan.spec.cost;
  return problem;
}

}  // namespace

std::vector<solve::StepCost> costByNode(const Plan& plan) {
  const solve::Problem problem = problemOf(plan);
  const solve::Variables variables(problem);
  return solve::CostModel(problem, variables).byNode(*plan.solution);
}

Femtoseconds stepTime(const Plan& plan, bool isTraining) {
  if (isTraining == plan.spec.cost.isTraining) return plan.cost.femtoseconds();
  solve::Problem problem = problemOf(plan);
  problem.cost.isTraining = isTraining;
  return solve::costOf(problem, *plan.solution).femtoseconds();
}

}  // namespace cleave::plan
