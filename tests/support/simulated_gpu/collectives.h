#pragma once
/// A c10d backend with NCCL's checks and order of work, whose bytes go through Gloo.
#include "libtorch/rank/nccl/nccl_runtime.h"

namespace simulated_gpu {

/// As NcclRuntime::connect, for the GPU of `uuid`. A collective that has not completed after `limit` is broken off, as
/// by the watchdog of ProcessGroupNCCL: a host that waits for it inside an operator goes on, and meets the error.
cleave::torch_rank::NcclGroup connectGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const std::string& uuid, std::chrono::milliseconds limit);

}  // namespace simulated_gpu
