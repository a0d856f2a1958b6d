#pragma once
/// Memory of one rank that runs the whole model of a plan.
#include "plan/plan.h"

namespace cleave::plan {

/// Memory of the ATen graph, which is the program of one rank.
MemoryPrediction unsplitMemory(const Plan& plan);
/// Peak bytes of one rank that trains the rows of all replicas (program/mesh.h), without checkpoints.
std::int64_t unsplitTrainingBytes(const Plan& plan, int replicas);

}  // namespace cleave::plan
