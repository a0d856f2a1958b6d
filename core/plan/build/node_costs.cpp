#include "plan/build/node_costs.h"

#include "solve/cost/cost_model.h"

namespace cleave::plan {

std::vector<solve::StepCost> costByNode(const Plan& plan) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {plan.ranks, plan.candidateSet, plan.sequenceParallel};
  problem.cost = plan.costSettings;
  const solve::Variables variables(problem);
  return solve::CostModel(problem, variables).byNode(*plan.solution);
}

}  // namespace cleave::plan
