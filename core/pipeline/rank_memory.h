#pragma once
/// What a rank's process needs besides its program, and what that leaves.
#include "pipeline/report.h"

#include <cstdint>

namespace cleave::pipeline {

/// Bytes that the program of each of `ranks` processes on CPUs may hold where `available` are free for all of them: a
/// plan that holds no more passes `checkMemory` (run.h). 0: nothing is left.
std::int64_t roomForProgram(std::int64_t available, int ranks);

/// Bytes of the program that the unsplit run of this plan takes: the whole model, and the rows of all replicas.
std::int64_t unsplitBytes(const plan::Plan& plan, const Workload& workload);

/// Bytes that a process takes on its GPU beyond its CUDA context and its program: kernels that are loaded later, cuBLAS
/// workspaces, and with peers NCCL's channels. Outside PyTorch's allocator vLLM reports 0.13 GiB on one H100 and 0.55
/// GiB on each of two (llm-d's memory tables).
inline constexpr std::int64_t kAloneOnGpuBytes = 256 << 20, kWithPeersOnGpuBytes = 768 << 20;

}  // namespace cleave::pipeline
