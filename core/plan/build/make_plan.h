#pragma once
#include "base/progress.h"
#include "plan/build/plan_request.h"
#include "plan/replication/explain_replication.h"

namespace cleave::plan {

/// Annotates layers, builds the rank program and the shard map, and predicts memory. It does not search: `explanation`
/// has the reasons for replicated parts (replication/explain_replication.h). With an empty one the plan counts the
/// replicated parts, and their reasons are NotKnown. BadInput if the shape of a checkpoint tensor is not the model's.
/// Sets timings.annotateMs and timings.replaceMs; the caller sets the others, and adds the time of the explanation to
/// annotateMs.
Result<Plan> makePlan(const PlanRequest& request, const Explanation& explanation, const Progress& progress = {});

}  // namespace cleave::plan
