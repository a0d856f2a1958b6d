#pragma once
/// What the replicas of a plan (program/mesh.h) add up over each other at the end of a training step, the loss and all
/// gradients: which collectives, how long they are predicted to take, and how long they took.
#include "pipeline/timeline.h"
#include "plan/plan.h"
#include "program/mesh.h"

#include <optional>
#include <vector>

namespace cleave::pipeline {

struct ReplicaSum {
  std::int64_t collectives = 0;
  std::int64_t bytes = 0;               ///< of a rank's tensors
  double predictedSeconds = 0;          ///< as the cost model counts (solve/cost/link.h), on the plan's device
  std::optional<double> tookSeconds{};  ///< on the rank where it was longest, without waiting; nullopt: not recorded
  bool isEmpty() const { return collectives == 0; }
};

/// In the order in which a rank performs them; none of one replica.
std::vector<plan::CollectivePlan> replicaCollectives(const plan::Plan& plan, int replicas);
/// Bytes of the largest bucket that is summed: a rank holds it beside its gradients.
std::int64_t largestBucket(const plan::Plan& plan, int replicas);

ReplicaSum replicaSum(const plan::Plan& plan, const program::Mesh& mesh, const Timeline& timeline);
/// "loss and gradients over 2 replicas: 2 all-reduces of 1.20 MiB, 30 µs (24 µs predicted on h100)"; empty: nothing.
std::string toText(const ReplicaSum& sum, const plan::Plan& plan, const program::Mesh& mesh);

}  // namespace cleave::pipeline
