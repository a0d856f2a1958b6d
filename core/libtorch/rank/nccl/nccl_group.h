#pragma once
/// A process group over NCCL on one GPU. CUDA inside: for libcleave_nccl.so alone.
#include "libtorch/rank/nccl/nccl_runtime.h"

namespace cleave::torch_rank {

/// Before the first group: c10d's watchdog breaks off a communicator that hangs, and leaves the process alive, which
/// has its error still to report.
void keepWatchdogFromKilling();

/// As NcclRuntime::connect; `request` has the rank and size of this group.
NcclGroup connectGroup(const NcclRequest& request, int device, const c10::intrusive_ptr<c10d::Store>& store);

/// "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6": the same in all processes that see this GPU.
std::string uuidOf(int device);

}  // namespace cleave::torch_rank
