#pragma once
/// Parses tensor types in texts from files.
#include "graph/types.h"

#include <cstddef>

namespace cleave::graph {

inline constexpr std::size_t kMaxDimensions = 64;  ///< limit for one tensor, as in PyTorch

/// "bf16[8,512,4096]", as toText writes it. nullopt for any other text, and for more than kMaxDimensions.
std::optional<TensorType> parseTensorType(std::string_view text);

}  // namespace cleave::graph
