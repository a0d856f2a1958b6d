#include "plan/build/unsplit_memory.h"

#include "plan/build/steps.h"
#include "plan/replication/one_rank_cost.h"

namespace cleave::plan {

MemoryPrediction unsplitMemory(const Plan& plan) {
  ShardMap whole = plan.parameters;
  for (ParameterShards& parameter : whole) parameter.localShape = parameter.type.shape;
  return predictMemory(*plan.graph, whole, *plan.graph);
}

std::int64_t unsplitTrainingBytes(const Plan& plan, int replicas) {
  solve::Problem problem;
  problem.graph = plan.graph;
  problem.context = {1, plan.spec.candidates(), rules::SequenceParallel::Off};
  problem.cost.profile = plan.spec.cost.profile;
  problem.cost.isTraining = true;
  problem.cost.optimizer = plan.spec.cost.optimizer;
  const solve::PlanCost cost = costOfReplicated(problem);
  return cost.bytes() + (replicas - 1) * cost.sum.activations;
}

}  // namespace cleave::plan
