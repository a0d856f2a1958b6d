#pragma once
/// Layers by the strategy they took: the one count behind the canvas, the modules tree and the legend. How much of the
/// work and of the weights a whole plan divides is told by plan/shares.h.
///
/// Layers with a parameter are counted, by strategy, and weighed by the bytes of their weights and by the forward FLOPs
/// of the whole layer (solve/cost/flops.h). A weight that several layers share counts at the first. A layer of which
/// every rank holds everything (as many copies as ranks) is replicated, whatever its strategy is called.
///
///     const std::vector<NodeWork> work = workOf(graph);
///     WorkTally tally;
///     for (NodeId n : nodes) tally.add(work[n.index()], layerSplit(strategyOf(n), weightOf(n), ranks));
///     tally.of(LayerSplit::Row).layers;
#include "plan/plan.h"

#include <array>

namespace cleave::plan {

/// What a reader calls a layer's strategy.
enum class LayerSplit : std::uint8_t {
  Column,
  ColumnGather,  ///< computed in parts, whole again at once: what follows is not split by it
  Row,
  Vocab,
  Expert,
  Sequence,  ///< whole weights, each rank computes its part of the sequence
  Replicated,
  Open,  ///< not decided (yet)
};
inline constexpr std::size_t kLayerSplits = 8;
std::string_view toText(LayerSplit split);  ///< "column", "column+gather", "row", "vocab", "expert", "sequence",
                                            ///< "replicated", "open"
/// Nullopt: open. `weight`: how its weight is placed; R for a layer without one.
LayerSplit layerSplit(std::optional<rules::Strategy> strategy, const Placement& weight, int ranks);
/// True when a rank computes less than the whole layer.
constexpr bool isSplit(LayerSplit split) { return split < LayerSplit::Replicated; }
/// True when no rank holds all of the layer's weight, and the parts that the ranks compute are used as parts: what
/// solve::LayerCount::split counts. A layer on the sequence is replicated there.
constexpr bool splitsWeight(LayerSplit split) {
  return split < LayerSplit::Sequence && split != LayerSplit::ColumnGather;
}

/// What a node brings to the counts, whatever is split.
struct NodeWork {
  double flops = 0;
  std::int64_t weightBytes = 0;  ///< of the parameters that this layer is the first to use
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

/// Sums of NodeWork. What was added can be taken out again, exactly as long as FLOPs stay below 2^53.
struct WorkTally {
  std::array<LayerTally, kLayerSplits> splits{};
  double flops = 0;  ///< of all operators: attention's products too
  const LayerTally& of(LayerSplit split) const { return splits[static_cast<std::size_t>(split)]; }
  LayerTally total() const;
  void add(const NodeWork& work, LayerSplit split, int times = 1);  ///< -1: takes it out again
  WorkTally& operator+=(const WorkTally& other);
  bool operator==(const WorkTally&) const = default;
};

}  // namespace cleave::plan
