#pragma once
/// Loads libcleave_nccl.so, once per process. This header uses LibTorch.
#include "base/result.h"
#include "libtorch/rank/collectives/collectives.h"
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

#include <string>

namespace cleave::torch_rank {

/// Opens the rank's GPU. Returns Environment if the library, CUDA's libraries, the driver or the GPU is missing; the
/// message names it. Call this before any other use of CUDA, because LibTorch checks for CUDA only once.
Result<NcclRuntime> openNccl(const std::string& library, const NcclRequest& request);

/// CUDA's versions and GPUs, in a process that runs nothing else. Returns Environment if the library cannot be loaded.
Result<ProbedCuda> probeNccl(const std::string& library);

/// Connects to all peers on the GPU of `runtime`. Returns RankFailed if they do not answer within
/// `group.connectTimeout` or a connection breaks, and Environment if the cause is on this machine, such as two ranks
/// with one GPU.
Result<std::unique_ptr<Collectives>> connectNccl(const NcclRuntime& runtime, const GroupAddress& group);

}  // namespace cleave::torch_rank
