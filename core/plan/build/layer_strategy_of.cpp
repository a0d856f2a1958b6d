#include "plan/build/layer_strategy_of.h"

#include "base/wildcard.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using rules::LayerStrategy;
using solve::ValueId;

bool lies(const LayerStrategy& option, const graph::LayerShape& layer, ValueId result,
          const solve::Solution& solution) {
  const auto isAs = [&](ValueId value, const rules::Placement& placement) {
    return !value.isValid() || solution.of(value) == placement;
  };
  return isAs(layer.input, option.input) && isAs(layer.weight, option.weight) && isAs(layer.bias, option.bias) &&
         isAs(layer.down, option.down.value_or(rules::Placement())) && solution.computed(result) == option.result;
}

/// Without its rule a layer is replicated and takes everything replicated, whatever the candidate set has.
std::vector<LayerStrategy> layerStrategiesOf(const solve::Problem& problem, solve::NodeId node,
                                             const graph::LayerShape& layer) {
  const std::string& op = problem.graph->opName(problem.graph->node(node));
  const auto isOff = [&](const std::string& pattern) { return matchesWildcard(pattern, op); };
  if (std::any_of(problem.rulesOff.begin(), problem.rulesOff.end(), isOff)) return {LayerStrategy{}};
  return rules::layerStrategies(*problem.graph, node, layer, problem.context).offered;
}

}  // namespace

std::optional<LayerStrategy> layerStrategyOf(const solve::Problem& problem, solve::NodeId node,
                                             const graph::LayerShape& layer, rules::Strategy strategy,
                                             const solve::Solution& solution) {
  const ValueId result = problem.graph->node(node).results[0];
  for (LayerStrategy& option : layerStrategiesOf(problem, node, layer)) {
    if (option.strategy == strategy && lies(option, layer, result, solution)) return std::move(option);
  }
  return std::nullopt;
}

}  // namespace cleave::plan
