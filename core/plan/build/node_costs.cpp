#include "plan/build/node_costs.h"

#include "solve/cost/cost_model.h"

namespace cleave::plan {

std::vector<solve::StepCost> costByNode(const Plan& plan) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {plan.spec.ranks, plan.spec.candidates(), plan.spec.sequenceParallel};
  problem.cost = plan.spec.cost;
  const solve::Variables variables(problem);
  return solve::CostModel(problem, variables).byNode(*plan.solution);
}

}  // namespace cleave::plan
