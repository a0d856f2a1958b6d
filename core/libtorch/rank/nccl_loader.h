#pragma once
/// Loads libcleave_nccl.so, once per process. LibTorch inside.
#include "base/result.h"
#include "libtorch/rank/collectives.h"
#include "libtorch/rank/nccl/nccl_runtime.h"

#include <string>

namespace cleave::torch_rank {

/// Environment when the library, CUDA's libraries, the driver or the GPU is missing; says which. Must come before
/// anything asks LibTorch for CUDA: LibTorch looks only once whether CUDA is there.
Result<NcclRuntime> openNccl(const std::string& library, const NcclRequest& request);

/// What CUDA offers, in a process that runs nothing else; Environment as above when the library cannot be loaded.
Result<ProbedCuda> probeNccl(const std::string& library);

/// Connects to all peers on the GPUs that `runtime` took. RankFailed when they do not answer within
/// `group.connectTimeout` or a connection breaks; Environment when it is this machine's fault, such as two ranks with
/// one GPU.
Result<std::unique_ptr<Collectives>> connectNccl(const NcclRuntime& runtime, const GroupAddress& group);

}  // namespace cleave::torch_rank
