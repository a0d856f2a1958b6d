#pragma once
/// The collectives with which the replicas of a plan (program/mesh.h) add up the loss and all gradients at the end of a
/// training step.
#include "plan/plan.h"

#include <cstdint>
#include <vector>

namespace cleave::pipeline {

/// In the order in which a rank performs them; empty for one replica.
std::vector<plan::CollectivePlan> replicaCollectives(const plan::Plan& plan, int replicas);
/// Bytes of the largest bucket in these sums. A rank allocates it in addition to its gradients.
std::int64_t largestBucket(const plan::Plan& plan, int replicas);

}  // namespace cleave::pipeline
