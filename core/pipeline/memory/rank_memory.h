#pragma once
/// The memory that a rank's process needs in addition to its program.
#include "pipeline/memory/workload.h"
#include "plan/plan.h"

#include <cstdint>

namespace cleave::pipeline {

/// Bytes for the program of each of `ranks` CPU processes if `available` bytes are free for all of them together. A
/// plan within this limit passes `checkMemory` (memory_check.h). 0 if no memory remains.
std::int64_t roomForProgram(std::int64_t available, int ranks);

/// Bytes that the program of the unsplit run needs: the full model and the rows of all replicas.
std::int64_t unsplitBytes(const plan::Plan& plan, const Workload& workload);

/// Bytes that a process needs on its GPU in addition to its CUDA context and its program: kernels that are loaded
/// later, cuBLAS workspaces, and NCCL's channels if there are peers. vLLM reports 0.13 GiB outside PyTorch's allocator
/// on one H100 and 0.55 GiB on each of two (llm-d's memory tables).
inline constexpr std::int64_t kAloneOnGpuBytes = 256 << 20, kWithPeersOnGpuBytes = 768 << 20;
/// Bytes that a rank needs on its GPU in addition to its CUDA context: the program, CUDA's libraries and NCCL.
std::int64_t gpuBytes(const plan::Plan& plan, const Workload& workload = {});

/// Bytes that a CPU rank needs in addition to its program. Each process has LibTorch's data, scratch of matrix
/// products, threads and Gloo's buffers: measured as 61 MiB with a program of 1 MiB, 98 MiB with 181 MiB and 120 MiB
/// with 808 MiB. All processes share the code.
inline constexpr std::int64_t kOwnBytesOnCpu = 120 << 20, kSharedBytesOnCpu = 72 << 20;

}  // namespace cleave::pipeline
