#pragma once
/// The sum over the replicas of a plan (program/mesh.h) at the end of a training step, for the loss and all gradients:
/// its collectives, predicted time and measured time.
#include "pipeline/report/timeline.h"
#include "plan/plan.h"
#include "program/mesh.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cleave::pipeline {

struct ReplicaSum {
  std::int64_t collectives = 0;
  std::int64_t bytes = 0;               ///< bytes of the summed tensors per rank
  double predictedSeconds = 0;          ///< prediction of the cost model (solve/cost/link.h) for the plan's device
  std::optional<double> tookSeconds{};  ///< time on the slowest rank, without waiting; nullopt: not recorded
  bool isEmpty() const { return collectives == 0; }
};

ReplicaSum replicaSum(const plan::Plan& plan, const program::Mesh& mesh, const Timeline& timeline);
/// "loss and gradients over 2 replicas: 2 all-reduces of 1.20 MiB, 30 µs (24 µs predicted on h100)"; empty for an empty
/// sum.
std::string toText(const ReplicaSum& sum, const plan::Plan& plan, const program::Mesh& mesh);

}  // namespace cleave::pipeline
