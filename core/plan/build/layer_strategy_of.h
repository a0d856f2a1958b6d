#pragma once
/// The strategy of a layer, found again from its name and the placements around it.
#include "solve/problem/problem.h"

#include <optional>

namespace cleave::plan {

/// The layer's strategy with this name and the solution's placements; nullopt if no allowed strategy has them. Two
/// strategies may share a name (plain and fused columns).
std::optional<rules::LayerStrategy> layerStrategyOf(const solve::Problem& problem, solve::NodeId node,
                                                    const graph::LayerShape& layer, rules::Strategy strategy,
                                                    const solve::Solution& solution);

}  // namespace cleave::plan
