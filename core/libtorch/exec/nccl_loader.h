#pragma once
/// Loads libcleave_nccl.so, once per process. LibTorch inside.
#include "base/result.h"
#include "libtorch/exec/nccl/nccl_runtime.h"

#include <string>

namespace cleave::torch_exec {

/// Environment when the library, CUDA's libraries, the driver or the GPU is missing; says which. Must come before
/// anything asks LibTorch for CUDA: LibTorch looks only once whether CUDA is there.
Result<NcclRuntime> openNccl(const std::string& library, const NcclRequest& request);

}  // namespace cleave::torch_exec
