#pragma once
#include "plan/plan.h"

#include <vector>

namespace cleave::plan {

/// Cost on one rank of each node of the ATen graph, with its collectives; by NodeId.
std::vector<solve::StepCost> costByNode(const Plan& plan);

}  // namespace cleave::plan
