#include "pipeline/memory/rank_memory.h"

#include "pipeline/memory/predicted_memory.h"
#include "plan/build/unsplit_memory.h"
#include "plan/shares.h"

#include <algorithm>

namespace cleave::pipeline {

std::int64_t roomForProgram(std::int64_t available, int ranks) {
  return std::max<std::int64_t>(0, (available - kSharedBytesOnCpu) / ranks - kOwnBytesOnCpu);
}

std::int64_t gpuBytes(const plan::Plan& plan, const Workload& workload) {
  const bool hasPeers = plan.spec.ranks * workload.replicas > 1;
  return predictedMemory(plan, workload) + (hasPeers ? kWithPeersOnGpuBytes : kAloneOnGpuBytes);
}

std::int64_t unsplitBytes(const plan::Plan& plan, const Workload& workload) {
  if (workload.isTraining) return plan::unsplitTrainingBytes(plan, workload.replicas);
  const plan::MemoryPrediction ofReplica = plan::unsplitMemory(plan);
  if (workload.step) return memoryOfBoth(ofReplica, plan::unsplitMemory(*workload.step));
  return ofReplica.total() + (workload.replicas - 1) * (ofReplica.inputs + ofReplica.peakActivations);
}

}  // namespace cleave::pipeline
