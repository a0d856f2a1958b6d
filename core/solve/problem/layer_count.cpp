#include "solve/problem/layer_count.h"

namespace cleave::solve {

LayerCount countLayers(const Graph& graph, const Solution* solution, int worldSize) {
  LayerCount count;
  for (NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, node);
    if (!layer || !layer->weight.isValid()) continue;
    ++count.layers;
    const auto* taken = solution ? &solution->strategies[node.index()] : nullptr;
    if (!taken || !*taken || !rules::isSplit(**taken, worldSize)) continue;
    const ValueId result = graph.node(node).results.front();
    const bool isGathered = (*taken)->strategy == rules::Strategy::ColumnGather ||
                            (solution->computed(result).isSplit() && solution->of(result).isReplicated());
    ++(isGathered ? count.gathered : count.split);
  }
  return count;
}

}  // namespace cleave::solve
