#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace cleave::torch_rank {

/// A digest of type, shape and bytes. Equal tensors have equal digests.
std::uint64_t digest(const at::Tensor& tensor);

}  // namespace cleave::torch_rank
