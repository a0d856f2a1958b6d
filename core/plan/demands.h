#pragma once
/// The user's demands as a plan file keeps them, and what layers may be under them.
#include "solve/problem/problem.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::plan {

/// Pins as they were written, "rule off: PATTERN", "redistribute: PATTERN".
std::vector<std::string> demandsOf(const solve::Problem& problem);
/// Puts such texts back into a problem's pins, rulesOff and redistributable; BadInput names a text that is none of
/// them.
Result<void> addDemands(const std::vector<std::string>& demands, solve::Problem& problem);

/// The strategy of a layer, with placements, that has this strategy and the solution's placements around it; nullopt:
/// none that may be. Two strategies may share a name (plain and fused columns).
std::optional<rules::LayerStrategy> layerStrategyOf(const solve::Problem& problem, solve::NodeId node,
                                                    const graph::LayerShape& layer, rules::Strategy strategy,
                                                    const solve::Solution& solution);

}  // namespace cleave::plan
