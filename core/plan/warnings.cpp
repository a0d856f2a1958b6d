#include "base/quantities.h"
#include "graph/operators.h"
#include "plan/steps.h"
#include "solve/wording.h"

#include <map>

namespace cleave::plan {
namespace {

bool isSplit(const LayerPlan& layer) { return layer.axis != "replicated"; }

struct Group {
  std::string pattern, reason, firstName;
  std::size_t count = 0;
  std::int64_t bytes = 0;
};

/// Whole layers with parameters, in graph order, equal ones together.
std::vector<Group> wholeLayers(const Graph& graph, const std::vector<LayerPlan>& layers) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> groupOf;
  for (const LayerPlan& layer : layers) {
    if (isSplit(layer) || layer.weight.empty()) continue;
    const auto shape = graph::layerShape(graph, layer.node);
    const std::string pattern = solve::withoutIndices(layer.name);
    const auto [entry, isNew] = groupOf.emplace(pattern, groups.size());
    if (isNew) groups.push_back({pattern, layer.reason, layer.name});
    Group& group = groups[entry->second];
    ++group.count;
    group.bytes += sizeInBytes(graph.value(shape->weight).type);
  }
  return groups;
}

}  // namespace

std::vector<std::string> warningsFor(const PlanRequest& request, const std::vector<LayerPlan>& layers, const MemoryPrediction& memory) {
  std::vector<std::string> warnings;
  const int ranks = request.problem->context.worldSize;
  if (ranks == 1) return warnings;
  const bool anySplit = std::any_of(layers.begin(), layers.end(), isSplit);
  if (!anySplit) {
    const std::string why = layers.empty() ? "the model has no layer that could be" : fmt::format("{}: {}", layers.front().name, layers.front().reason);
    warnings.push_back(fmt::format("Nothing could be split: each of the {} ranks holds all {} of parameters and computes the same ({}).", ranks,
                                   bytesText(memory.parameters), why));
  }
  for (const Group& group : wholeLayers(*request.problem->graph, layers)) {
    if (group.count == 1) {
      warnings.push_back(fmt::format("{} stays whole, {} on every rank: {}.", group.firstName, bytesText(group.bytes), group.reason));
    } else {
      warnings.push_back(fmt::format("{} layers {} stay whole, {} on every rank: {}.", group.count, group.pattern, bytesText(group.bytes), group.reason));
    }
  }
  return warnings;
}

}  // namespace cleave::plan
