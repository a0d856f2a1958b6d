#pragma once
/// Between the graph's types and ATen's. LibTorch inside.
#include "graph/types.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace cleave::torch_exec {

at::ScalarType toTorch(graph::DType dtype);
/// nullopt for ATen's types that a graph cannot have (complex, quantized, ...).
std::optional<graph::DType> fromTorch(at::ScalarType type);
/// "f32[2,8]" for a tensor; "absent" for an undefined one.
std::string describe(const at::Tensor& tensor);

}  // namespace cleave::torch_exec
