#pragma once
/// The number of layers of a graph, and the number that a solution splits. All reports of these counts use this.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// Counts of layers with a weight. Layers that share a weight count separately.
struct LayerCount {
  std::size_t split = 0;  ///< each rank has part of the weight (rules::isSplit), and the result is not gathered
  std::size_t layers = 0;
  std::size_t gathered = 0;  ///< each rank has part of the weight, but the result is gathered right after the product
  bool operator==(const LayerCount&) const = default;
};
/// A null `solution` counts every layer as not split.
LayerCount countLayers(const Graph& graph, const Solution* solution, int worldSize);

}  // namespace cleave::solve
