#include "base/quantities.h"
#include "graph/operators.h"
#include "plan/steps.h"
#include "solve/wording.h"

#include <algorithm>
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
    // Whole by choice is no cause for a warning.
    if (isSplit(layer) || layer.weight.empty() || layer.regretFs || layer.isForcedByBudget) continue;
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

std::string nothingSplit(const PlanRequest& request, const Plan& plan) {
  const auto isCheaperWhole = [](const LayerPlan& layer) { return layer.regretFs.has_value(); };
  if (request.optimum && std::any_of(plan.layers.begin(), plan.layers.end(), isCheaperWhole)) {
    return fmt::format("Nothing is split: on {} ranks of {} the fastest step ({}) computes everything on each of them, and each holds {}. The engine `reference` "
                       "splits what it can; a memory budget below that splits what it must.",
                       plan.ranks, plan.costSettings.profile.name, solve::timeText(plan.cost.femtoseconds()), bytesText(plan.cost.bytes()));
  }
  const std::string why =
      plan.layers.empty() ? "the model has no layer that could be" : fmt::format("{}: {}", plan.layers.front().name, plan.layers.front().reason);
  return fmt::format("Nothing could be split: each of the {} ranks holds all {} of parameters and computes the same ({}).", plan.ranks,
                     bytesText(plan.memory.parameters), why);
}

}  // namespace

std::vector<std::string> warningsFor(const PlanRequest& request, const Plan& plan) {
  std::vector<std::string> warnings;
  if (plan.ranks == 1) return warnings;
  if (std::none_of(plan.layers.begin(), plan.layers.end(), isSplit)) warnings.push_back(nothingSplit(request, plan));
  for (const Group& group : wholeLayers(*request.problem->graph, plan.layers)) {
    if (group.count == 1) {
      warnings.push_back(fmt::format("{} stays whole, {} on every rank: {}.", group.firstName, bytesText(group.bytes), group.reason));
    } else {
      warnings.push_back(fmt::format("{} layers {} stay whole, {} on every rank: {}.", group.count, group.pattern, bytesText(group.bytes), group.reason));
    }
  }
  return warnings;
}

}  // namespace cleave::plan
