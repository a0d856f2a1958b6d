#pragma once
/// Memory for a parameter. LibTorch inside.
///
/// A large one on a CPU gets a mapping of its own, in huge pages where the system has them (transparent huge pages,
/// `always` or `madvise`): half of what loading takes is otherwise the faults of 4-KiB pages. It begins at a huge page
/// and is as long as the parameter, and so takes no more than that. To whoever counts LibTorch's allocations it is one
/// of them.
#include "graph/types.h"

#include <ATen/core/Tensor.h>

namespace cleave::torch_rank {

/// Its elements have no values yet. Throws c10::OutOfMemoryError or std::bad_alloc where there is no memory for it.
at::Tensor emptyParameter(const graph::TensorType& type, at::Device device);

}  // namespace cleave::torch_rank
