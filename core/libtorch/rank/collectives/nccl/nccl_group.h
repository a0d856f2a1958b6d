#pragma once
/// A process group over NCCL on one GPU. Uses CUDA, so only libcleave_nccl.so includes this header.
#include "libtorch/rank/collectives/nccl/nccl_runtime.h"

namespace cleave::torch_rank {

/// Call this before the first group. c10d's watchdog then aborts a communicator that hangs but does not end the
/// process, so that the process can report the error.
void keepWatchdogFromKilling();

/// Implements NcclRuntime::connect. `request` has the rank and size of this group.
NcclGroup connectGroup(const NcclRequest& request, int device, const c10::intrusive_ptr<c10d::Store>& store);

/// "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6". Equal in all processes that use this GPU.
std::string uuidOf(int device);

}  // namespace cleave::torch_rank
