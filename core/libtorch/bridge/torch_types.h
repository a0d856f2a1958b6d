#pragma once
/// Tensors in words, beside the element types of models/dtypes.h. LibTorch inside.
#include "libtorch/bridge/dtypes.h"

#include <ATen/core/Tensor.h>

#include <string>

namespace cleave::torch_rank {

/// "f32[2,8]" for a tensor; "absent" for an undefined one.
std::string describe(const at::Tensor& tensor);

}  // namespace cleave::torch_rank
