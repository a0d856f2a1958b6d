#pragma once
#include "plan/plan.h"

#include <vector>

namespace cleave::plan {

/// Cost on one rank of each node of the ATen graph, with its collectives; by NodeId.
std::vector<solve::StepCost> costByNode(const Plan& plan);

/// Predicted time of a training step, or of a forward pass of the same program: a plan for training can run both.
Femtoseconds stepTime(const Plan& plan, bool isTraining);

}  // namespace cleave::plan
