#pragma once
/// Converts between Cleave's element types and LibTorch's, and describes tensors as text. Uses LibTorch.
#include "graph/types.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace cleave::bridge {

at::ScalarType toScalarType(graph::DType dtype);
/// nullopt for types that a graph does not support (complex, quantized).
std::optional<graph::DType> toDType(at::ScalarType type);

/// "f32[2,8]" for a tensor; "absent" for an undefined one.
std::string describe(const at::Tensor& tensor);

}  // namespace cleave::bridge
