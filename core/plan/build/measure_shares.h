#pragma once
#include "plan/replication/explain_replication.h"
#include "plan/shares.h"

namespace cleave::plan {

/// Measures what a solution splits. Reasons come from the explanation; those that it lacks are NotKnown.
Shares sharesOf(const solve::Problem& problem, const solve::Solution& solution, const Explanation& explanation);

}  // namespace cleave::plan
