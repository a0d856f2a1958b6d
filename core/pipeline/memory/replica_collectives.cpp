#include "pipeline/memory/replica_collectives.h"

#include "program/gradient_buckets.h"

#include <algorithm>

namespace cleave::pipeline {

std::vector<plan::CollectivePlan> replicaCollectives(const plan::Plan& plan, int replicas) {
  constexpr auto kSum = rules::CollectiveKind::AllReduce;
  std::vector<plan::CollectivePlan> collectives;
  if (replicas == 1) return collectives;
  collectives.push_back({"the loss, over the replicas", kSum, sizeof(double), {}});
  for (const auto& bucket : program::gradientBuckets(*plan.program, graph::findGradients(*plan.program)))
    collectives.push_back({"all gradients, over the replicas", kSum, bucket.bytes, {}});
  return collectives;
}

std::int64_t largestBucket(const plan::Plan& plan, int replicas) {
  std::int64_t bytes = 0;
  for (const plan::CollectivePlan& collective : replicaCollectives(plan, replicas))
    bytes = std::max(bytes, collective.bytes);
  return bytes;
}

}  // namespace cleave::pipeline
