#pragma once
/// Cleave's element types and LibTorch's.
#include "graph/types.h"

#include <c10/core/ScalarType.h>

#include <optional>

namespace cleave::models {

at::ScalarType toScalarType(graph::DType dtype);
/// nullopt for types a graph cannot hold (complex, quantized).
std::optional<graph::DType> toDType(at::ScalarType type);

}  // namespace cleave::models
