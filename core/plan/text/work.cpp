#include "plan/text/work.h"

#include "graph/layers.h"
#include "graph/weights.h"
#include "solve/cost/flops.h"

namespace cleave::plan {
namespace {

using rules::Strategy;

LayerTally& operator+=(LayerTally& sum, const LayerTally& other) {
  sum.layers += other.layers;
  sum.weightBytes += other.weightBytes;
  sum.flops += other.flops;
  return sum;
}

LayerSplit layerSplitOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::Column:
    case Strategy::GatherColumn: return LayerSplit::Column;
    case Strategy::ColumnGather: return LayerSplit::ColumnGather;
    case Strategy::Row:
    case Strategy::RowScatter: return LayerSplit::Row;
    case Strategy::Vocab:
    case Strategy::VocabScatter: return LayerSplit::Vocab;
    case Strategy::ByExpert:
    case Strategy::InExpert: return LayerSplit::Expert;
    case Strategy::ReplicatedOnSequence: return LayerSplit::Sequence;
    case Strategy::Replicated:
    case Strategy::GatherReplicated: break;
  }
  return LayerSplit::Replicated;
}

}  // namespace

std::string_view toText(LayerSplit split) {
  static constexpr std::array<std::string_view, kLayerSplits> kNames{"column", "column+gather", "row",        "vocab",
                                                                     "expert", "sequence",      "replicated", "open"};
  return kNames[static_cast<std::size_t>(split)];
}

LayerSplit layerSplit(std::optional<Strategy> strategy, const Placement& weight, int ranks) {
  if (!strategy) return LayerSplit::Open;
  // One rank splits nothing, and copies on all ranks are not a split.
  const bool isCopy = ranks == 1 || (weight.isSplit() && weight.isReplicatedOn(ranks));
  return isCopy ? LayerSplit::Replicated : layerSplitOf(*strategy);
}

std::vector<NodeWork> workOf(const Graph& graph) {
  const std::vector<double> flops = solve::replicatedFlops(graph);
  std::vector<bool> isTaken(graph.values.size(), false);
  std::vector<bool> mayBeLayer;
  for (const std::string& op : graph.ops) mayBeLayer.push_back(graph::mayBeLayer(op));
  std::vector<NodeWork> work(graph.nodes.size());
  for (const NodeId id : idRange<NodeId>(graph.nodes.size())) {
    NodeWork& node = work[id.index()];
    node.flops = flops[id.index()];
    const graph::Node& call = graph.node(id);
    if (call.kind != graph::NodeKind::Call || !mayBeLayer[call.op.index()]) continue;
    const auto layer = graph::layerShape(graph, id);
    if (!layer) continue;
    node.isLayer = true;
    for (const ValueId weight : {layer->weight, layer->bias, layer->down}) {
      node.isCounted = node.isCounted || weight.isValid();
      for (const ValueId parameter : graph::parametersOf(graph, weight)) {
        if (isTaken[parameter.index()]) continue;
        isTaken[parameter.index()] = true;
        node.weightBytes += graph.heldBytes(parameter);
      }
    }
  }
  return work;
}

LayerTally WorkTally::total() const {
  LayerTally sum;
  for (const LayerTally& split : splits) sum += split;
  return sum;
}

void WorkTally::add(const NodeWork& work, LayerSplit split, int times) {
  flops += times * work.flops;
  if (!work.isCounted) return;
  LayerTally& of = splits[static_cast<std::size_t>(split)];
  of.layers += static_cast<std::uint32_t>(times);
  of.weightBytes += times * work.weightBytes;
  of.flops += times * work.flops;
}

WorkTally& WorkTally::operator+=(const WorkTally& other) {
  for (std::size_t i = 0; i < kLayerSplits; ++i) splits[i] += other.splits[i];
  flops += other.flops;
  return *this;
}

}  // namespace cleave::plan
