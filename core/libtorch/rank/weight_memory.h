#pragma once
/// Memory for a parameter. LibTorch inside.
///
/// A large one on a CPU gets a mapping of its own, in huge pages where the system has them (transparent huge pages,
/// `always` or `madvise`): half of what loading takes is otherwise the faults of 4-KiB pages. It begins at a huge page
/// and is as long as the parameter, and so takes no more than that. Where its values lie in a file as they are needed,
/// the file's own pages can be its memory: nothing is copied, and ranks on one machine hold what they share once. To
/// whoever counts LibTorch's allocations both are among them.
#include "base/file_mapping.h"
#include "graph/types.h"

#include <ATen/core/Tensor.h>

namespace cleave::torch_rank {

/// Its elements have no values yet. Throws c10::OutOfMemoryError or std::bad_alloc where there is no memory for it.
at::Tensor emptyParameter(const graph::TensorType& type, at::Device device);

/// True of a parameter that is large enough for memory of its own, on a CPU.
bool hasOwnMemory(const graph::TensorType& type, at::Device device);

/// One on a CPU whose values are those of the file. It counts as one that was made.
at::Tensor mappedParameter(const graph::TensorType& type, FileMapping values);

}  // namespace cleave::torch_rank
