#pragma once
/// The memory that a plan predicts for one rank.
#include "pipeline/memory/workload.h"
#include "plan/plan.h"

#include <cstdint>

namespace cleave::pipeline {

/// Peak memory per rank when it runs two programs in turn on the same weights, and keeps the inputs and constants of
/// both.
std::int64_t memoryOfBoth(const plan::MemoryPrediction& prompt, const plan::MemoryPrediction& step);
/// Predicted peak memory per rank. When several replicas train, it includes the bucket of gradients that they add up.
std::int64_t predictedMemory(const plan::Plan& plan, const Workload& workload);

}  // namespace cleave::pipeline
