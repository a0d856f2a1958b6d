#pragma once
/// Checks that the processes of a run fit into memory.
#include "launch/launcher.h"
#include "pipeline/memory/workload.h"
#include "plan/plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace cleave::pipeline {

/// The memory that the local ranks of a plan need, including LibTorch's own, and the memory that is free.
struct MemoryCheck {
  std::int64_t needed = 0;                ///< bytes of all processes on CPUs, or of one process on its GPU
  std::optional<std::int64_t> available;  ///< free bytes; nullopt: unknown
  std::string text;                       ///< both in one sentence
  bool fits() const { return !available || needed <= *available; }
};
/// `backend`: Gloo or Nccl. CPU ranks share the memory of the machine or container. Each GPU rank has its own GPU,
/// whose free memory is from launch::lastGpuProbe.
MemoryCheck checkMemory(const plan::Plan& plan, launch::Backend backend, const Workload& workload = {});
/// The same for the unsplit run, which starts when the ranks have ended: one process on CPUs that holds the full model
/// and computes the rows of all replicas.
MemoryCheck checkUnsplitMemory(const plan::Plan& plan, const Workload& workload = {});

}  // namespace cleave::pipeline
