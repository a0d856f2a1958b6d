#include "solve/problem/layer_count.h"

namespace cleave::solve {

LayerCount countLayers(const Graph& graph, const Solution* solution, int worldSize) {
  LayerCount count;
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, node);
    if (!layer || !layer->weight.isValid()) continue;
    ++count.layers;
    const auto* taken = solution ? &solution->strategies[node.index()] : nullptr;
    count.split += taken && *taken && rules::isSplit(**taken, worldSize);
  }
  return count;
}

}  // namespace cleave::solve
