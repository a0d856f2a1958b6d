#pragma once
/// Brings a GPU's libraries to their working state before memory and time count. LibTorch inside.
#include <c10/core/Device.h>

namespace cleave::torch_rank {

/// cuBLAS takes a workspace from PyTorch's allocator for each host thread that multiplies on a stream: 32 MiB
/// unless CUBLAS_WORKSPACE_CONFIG says otherwise (nccl_loader.cpp sets it). They stay for the life of the process. A
/// product on this thread and one on autograd's thread of this device make both, so that what a program allocates
/// afterwards is its own.
void warmUpLibraries(c10::Device device);

}  // namespace cleave::torch_rank
