#pragma once
/// Tensor types of foreign texts.
#include "graph/types.h"

#include <cstddef>

namespace cleave::graph {

inline constexpr std::size_t kMaxDimensions = 64;  ///< of a tensor; PyTorch's own limit

/// "bf16[8,512,4096]", as toText writes it; nullopt for anything else, more than kMaxDimensions included.
std::optional<TensorType> parseTensorType(std::string_view text);

}  // namespace cleave::graph
