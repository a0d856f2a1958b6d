#include "pipeline/memory/predicted_memory.h"

#include "pipeline/memory/replica_collectives.h"

#include <algorithm>

namespace cleave::pipeline {

std::int64_t memoryOfBoth(const plan::MemoryPrediction& prompt, const plan::MemoryPrediction& step) {
  return prompt.parameters + prompt.constants + step.constants + prompt.inputs + step.inputs +
         std::max(prompt.peakActivations, step.peakActivations);
}

std::int64_t predictedMemory(const plan::Plan& plan, const Workload& workload) {
  if (workload.step) return memoryOfBoth(plan.memory, workload.step->memory);
  if (!workload.isTraining) return plan.memory.total();
  if (workload.replicas == 1) return plan.cost.bytes();
  // When replicas add up their gradients, the activations are already freed.
  return std::max(plan.cost.bytes(),
                  plan.cost.additiveBytes() - plan.cost.sum.activations + largestBucket(plan, workload.replicas));
}

}  // namespace cleave::pipeline
