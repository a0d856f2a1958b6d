#pragma once
/// The strategies that a layer may use (strategy.h), found from its sizes and the settings. Pure and thread-safe.
///
///     for (const LayerStrategy& option : layerStrategies(graph, node, layer, context).offered) ...
#include "graph/layers.h"
#include "rules/layer_strategy.h"
#include "rules/strategy_context.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace cleave::rules {

LayerStrategies layerStrategies(const graph::Graph& graph, graph::NodeId node, const graph::LayerShape& layer,
                                const StrategyContext& context);

/// "257 vocabulary rows do not divide by 2 ranks". `many` is the plural if it is not one plus "s".
std::string doesNotDivide(std::int64_t count, std::string_view one, int ranks, std::string_view many = {});

}  // namespace cleave::rules
