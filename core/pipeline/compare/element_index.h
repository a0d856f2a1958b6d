#pragma once
/// Conversion of flat element positions to indices.
#include "graph/graph.h"

#include <cstdint>
#include <vector>

namespace cleave::pipeline {

/// The index of the element at position `flat` in row-major order.
inline std::vector<std::int64_t> indexOf(std::int64_t flat, const graph::Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t dim = shape.size(); dim-- > 0; flat /= shape[dim]) index[dim] = flat % shape[dim];
  return index;
}

}  // namespace cleave::pipeline
