#pragma once
/// The kinds of layers (layers.h).
#include <cstdint>

namespace cleave::graph {

enum class LayerKind : std::uint8_t { Linear, Embedding, CrossEntropy, Experts };

}  // namespace cleave::graph
