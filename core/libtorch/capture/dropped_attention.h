#pragma once
/// Attention with dropout on its weights, from operators of which each may be split: fused kernels draw their masks
/// inside, where ranks with parts of the heads would all draw the same.
#include "libtorch/capture/shape_functions.h"

#include <functional>
#include <string_view>

namespace cleave::torch_capture {

/// A `scaled_dot_product_attention` that drops some of its weights.
bool isDroppedAttention(std::string_view op, ShapeArguments args);

/// softmax(query · keyᵀ · scale + mask), through `drop`, times value.
at::Tensor droppedAttention(ShapeArguments args, const std::function<at::Tensor(const at::Tensor&, double)>& drop);

}  // namespace cleave::torch_capture
