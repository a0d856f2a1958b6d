#pragma once
/// Warms up a GPU's libraries before memory and time are measured. This header uses LibTorch.
#include <c10/core/Device.h>

namespace cleave::torch_rank {

/// cuBLAS allocates a workspace from PyTorch's allocator for each host thread that multiplies on a stream. Its size is
/// 32 MiB by default, or follows CUBLAS_WORKSPACE_CONFIG (set in nccl_loader.cpp). Workspaces are never freed. One
/// product on this thread and one on autograd's thread of this device allocate both, so they do not count as memory of
/// the program.
void warmUpLibraries(c10::Device device);

}  // namespace cleave::torch_rank
