#pragma once
#include "solve/cost/cost_model.h"

namespace cleave::plan {

/// The cost of the whole model on one rank.
solve::PlanCost costOfReplicated(const solve::Problem& problem);

}  // namespace cleave::plan
