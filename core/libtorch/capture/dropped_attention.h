#pragma once
/// Attention with dropout on its weights, composed of operators that can be split. Fused kernels draw their masks
/// inside, so ranks with different heads would all draw the same mask.
#include "libtorch/capture/shape_functions.h"

#include <functional>
#include <string_view>

namespace cleave::torch_capture {

/// True for a `scaled_dot_product_attention` with dropout.
bool isDroppedAttention(std::string_view op, ShapeArguments args);

/// softmax(query · keyᵀ · scale + mask), with `drop` applied, times value.
at::Tensor droppedAttention(ShapeArguments args, const std::function<at::Tensor(const at::Tensor&, double)>& drop);

}  // namespace cleave::torch_capture
