#pragma once
/// Layers by strategy. The canvas, the modules tree and the legend show this count. plan/shares.h has the shares of
/// work and weights of a whole plan.
///
/// Only layers with a parameter count. They are summed by strategy, with the bytes of their weights and the forward
/// FLOPs of the whole layer (solve/cost/flops.h). A weight of several layers counts for the first. A layer with as many
/// copies as ranks is replicated, whatever the name of its strategy.
///
///     const std::vector<NodeWork> work = workOf(graph);
///     WorkTally tally;
///     for (NodeId n : nodes) tally.add(work[n.index()], layerSplit(strategyOf(n), weightOf(n), ranks));
///     tally.of(LayerSplit::Row).layers;
#include "plan/plan.h"

#include <array>

namespace cleave::plan {

/// The strategy of a layer as readers name it.
enum class LayerSplit : std::uint8_t {
  Column,
  ColumnGather,  ///< computed in parts and gathered at once: later operators are not split by it
  Row,
  Vocab,
  Expert,
  Sequence,  ///< replicated weights; each rank computes its part of the sequence
  Replicated,
  Open,  ///< not decided (yet)
};
inline constexpr std::size_t kLayerSplits = 8;
std::string_view toText(LayerSplit split);  ///< "column", "column+gather", "row", "vocab", "expert", "sequence",
                                            ///< "replicated", "open"
/// A nullopt strategy is Open. `weight`: the placement of its weight; R for a layer without a weight.
LayerSplit layerSplit(std::optional<rules::Strategy> strategy, const Placement& weight, int ranks);
/// True when a rank computes less than the whole layer.
constexpr bool isSplit(LayerSplit split) { return split < LayerSplit::Replicated; }
/// True if the weight is split and later operators use the parts as parts, as in solve::LayerCount::split, which counts
/// layers on the sequence as replicated.
constexpr bool splitsWeight(LayerSplit split) {
  return split < LayerSplit::Sequence && split != LayerSplit::ColumnGather;
}

/// The contribution of a node to the sums, whether it is split or not.
struct NodeWork {
  double flops = 0;
  std::int64_t weightBytes = 0;  ///< bytes of the parameters that this layer uses first
  bool isLayer = false;          ///< has a strategy (graph/layers.h)
  bool isCounted = false;        ///< a layer with a parameter
};
std::vector<NodeWork> workOf(const Graph& graph);  ///< by NodeId

struct LayerTally {
  std::uint32_t layers = 0;
  std::int64_t weightBytes = 0;
  double flops = 0;  ///< of these layers
  bool operator==(const LayerTally&) const = default;
};

/// Sums of NodeWork. Subtracting is exact while FLOPs stay below 2^53.
struct WorkTally {
  std::array<LayerTally, kLayerSplits> splits{};
  double flops = 0;  ///< of all operators, with the products of attention
  const LayerTally& of(LayerSplit split) const { return splits[static_cast<std::size_t>(split)]; }
  LayerTally total() const;
  void add(const NodeWork& work, LayerSplit split, int times = 1);  ///< -1: subtracts
  WorkTally& operator+=(const WorkTally& other);
  bool operator==(const WorkTally&) const = default;
};

}  // namespace cleave::plan
