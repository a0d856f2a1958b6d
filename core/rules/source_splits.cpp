#include "rules/source_splits.h"

#include "graph/states.h"
#include "rules/dim_meaning.h"
#include "rules/layer_outputs.h"
#include "rules/weight_splits.h"

#include <algorithm>

namespace cleave::rules {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Shape;
using graph::ValueId;

/// Splits a cache by its heads, like the layers' keys and values: gcd(heads, ranks) parts, each replicated if there are
/// more ranks than parts.
std::vector<SourceSplit> cacheSplits(const Shape& shape, int ranks) {
  const std::int64_t heads = sizeAt(shape, graph::kCacheHeads);
  if (heads == 0) return {};
  const int copies = replicasFor(heads, ranks);
  const std::int64_t own = heads * copies / ranks;
  const Placement even = Placement::split(graph::kCacheHeads);
  if (copies == 1) return {{even, fmt::format("each rank keeps the keys or values of its {} of {} heads", own, heads)}};
  return {{even.withReplicas(copies), fmt::format("{} ranks each keep the keys or values of {} of {} heads", copies,
                                                  own == 1 ? "one" : std::to_string(own), heads)}};
}

}  // namespace

std::vector<SourceSplit> sourceSplits(const Graph& graph, NodeId source, const StrategyContext& context) {
  const Node& node = graph.node(source);
  if (node.kind == graph::NodeKind::Input && context.worldSize > 1 &&
      graph::isPast(graph.value(node.results.front()).name))
    return cacheSplits(graph.shapeOf(node.results.front()), context.worldSize);
  const bool isSource = node.kind == graph::NodeKind::Parameter || node.kind == graph::NodeKind::Constant;
  if (!isSource || context.worldSize == 1) return {};
  const ValueId value = node.results.front();
  const auto isOutput = [&](const graph::Output& output) { return output.value == value; };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), isOutput)) return {};
  const Shape& shape = graph.shapeOf(value);
  std::vector<SourceSplit> splits;
  if (node.kind == graph::NodeKind::Parameter) {
    for (Placement& placement : weightSplits(graph, value, context))
      splits.push_back({std::move(placement), "each rank computes its part of a layer's weight from its part"});
  }
  if (context.candidateSet != CandidateSet::Full) return splits;
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
    const std::int64_t size = sizeAt(shape, dim);
    if (size < context.worldSize) continue;
    const DimMeaning meaning = meaningOf(graph, value, dim);
    const auto add = [&](Placement placement, std::string_view what) {
      if (!placement.localShape(shape, context.worldSize)) return;
      const auto isKnown = [&](const SourceSplit& split) { return split.placement == placement; };
      if (std::any_of(splits.begin(), splits.end(), isKnown)) return;
      const std::int64_t own = sizeAt(*placement.localShape(shape, context.worldSize), dim);
      splits.push_back({std::move(placement), fmt::format("the values of {} of {} {} on each rank", own, size, what)});
    };
    if (meaning.isHeads) add(Placement::split(dim), "heads");
    for (const ValueId layer : meaning.features) {
      const int last = static_cast<int>(graph.shapeOf(layer).size()) - 1;
      const bool isWhole = sizeAt(graph.shapeOf(layer), last) == size;
      const auto lane = isWhole ? columnsForReaders(graph, layer, context.worldSize) : std::nullopt;
      if (lane && !lane->isReplicatedOn(context.worldSize)) add(lane->shifted(dim - last), "features");
      add(Placement::split(dim), "features");
    }
  }
  return splits;
}

}  // namespace cleave::rules
