#pragma once
/// Memory for a parameter. This header uses LibTorch.
///
/// A large parameter on a CPU gets its own mapping, in huge pages if the system supports them (transparent huge pages,
/// `always` or `madvise`). With 4-KiB pages, half of the loading time would be page faults. The mapping starts at a
/// huge page and has the size of the parameter. If a file contains the values in the right layout, its pages can be the
/// parameter's memory. Then nothing is copied, and ranks on one machine share the pages. Both kinds of memory are
/// reported as LibTorch's allocations.
#include "base/file_mapping.h"
#include "graph/types.h"

#include <ATen/core/Tensor.h>

namespace cleave::torch_rank {

/// An uninitialised parameter. Throws c10::OutOfMemoryError or std::bad_alloc for lack of memory.
at::Tensor emptyParameter(const graph::TensorType& type, at::Device device);

/// True for a parameter on a CPU that is large enough for its own mapping.
bool hasOwnMemory(const graph::TensorType& type, at::Device device);

/// A parameter on a CPU that uses the pages of a file. It is reported as an allocation.
at::Tensor mappedParameter(const graph::TensorType& type, FileMapping values);

}  // namespace cleave::torch_rank
