#pragma once
/// The difference between one value of a run and the same value of another run.
#include "graph/graph.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::pipeline {

/// An element that differs.
struct ElementDifference {
  std::vector<std::int64_t> index;  ///< index in the full tensor
  int rank = 0;                     ///< first rank with this element
  double actual = 0, expected = 0;
  double allowed = 0;  ///< allowed difference
};

/// The differences of a value. An element differs if its difference exceeds the one that rounding.h allows, or if only
/// one of the two numbers is finite.
struct ValueDifference {
  graph::ValueId value;                      ///< id in the ATen graph
  std::int64_t elements = 0;                 ///< number of elements of the full value
  std::int64_t outside = 0;                  ///< elements that differ, on the rank with the most of them
  std::optional<ElementDifference> largest;  ///< the element that differs most
};

}  // namespace cleave::pipeline
