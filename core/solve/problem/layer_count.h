#pragma once
/// How many layers a graph has and how many of them a solution splits: counted here and nowhere else.
#include "solve/problem/problem.h"

namespace cleave::solve {

/// Layers with a weight (the loss is split where its logits are). Layers that share a weight count each.
struct LayerCount {
  std::size_t split = 0;  ///< no rank holds all of the weight (rules::isSplit), and the parts are used as parts
  std::size_t layers = 0;
  std::size_t gathered = 0;  ///< no rank holds all of the weight, but the result is gathered right after the product
  bool operator==(const LayerCount&) const = default;
};
/// Without a solution nothing is split.
LayerCount countLayers(const Graph& graph, const Solution* solution, int worldSize);

}  // namespace cleave::solve
