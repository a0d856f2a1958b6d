#include "plan/build/demands.h"

#include "base/wildcard.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using rules::LayerStrategy;
using solve::ValueId;

constexpr std::string_view kRuleOff = "rule off: ", kRedistribute = "redistribute: ";

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

std::vector<std::string> demandsOf(const solve::Problem& problem) {
  std::vector<std::string> demands;
  for (const solve::Pin& pin : problem.pins) demands.push_back(pin.text);
  for (const std::string& pattern : problem.rulesOff) demands.push_back(std::string(kRuleOff) + pattern);
  for (const std::string& pattern : problem.redistributable) demands.push_back(std::string(kRedistribute) + pattern);
  return demands;
}

Result<void> addDemands(const std::vector<std::string>& demands, solve::Problem& problem) {
  for (const std::string& demand : demands) {
    if (demand.starts_with(kRuleOff)) {
      problem.rulesOff.push_back(demand.substr(kRuleOff.size()));
    } else if (demand.starts_with(kRedistribute)) {
      problem.redistributable.push_back(demand.substr(kRedistribute.size()));
    } else if (auto pin = solve::Pin::parse(demand)) {
      problem.pins.push_back(*std::move(pin));
    } else {
      return fail(ErrorCode::BadInput, "plan.demands: {}", pin.error().message);
    }
  }
  return {};
}

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
