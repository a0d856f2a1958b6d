#pragma once
/// A c10d backend with the checks and the order of work of NCCL. It sends its bytes through Gloo.
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

namespace simulated_gpu {

/// The counterpart of NcclRuntime::connect, for the GPU with `uuid`. Aborts a collective after `limit`, as the watchdog
/// of ProcessGroupNCCL does: a host that waits for it inside an operator continues and gets the error.
cleave::torch_rank::NcclGroup connectGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                           const std::string& uuid, std::chrono::milliseconds limit);

}  // namespace simulated_gpu
