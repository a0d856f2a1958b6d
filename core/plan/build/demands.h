#pragma once
/// The user's demands in the form of a plan file, and the strategies that they leave to layers.
#include "solve/problem/problem.h"

#include <optional>
#include <string>
#include <vector>

namespace cleave::plan {

/// Pins in the user's text, "rule off: PATTERN", "redistribute: PATTERN".
std::vector<std::string> demandsOf(const solve::Problem& problem);
/// Adds such texts to a problem's pins, rulesOff and redistributable. BadInput names a text of another form.
Result<void> addDemands(const std::vector<std::string>& demands, solve::Problem& problem);

/// The layer's strategy with this name and the solution's placements; nullopt if no allowed strategy has them. Two
/// strategies may share a name (plain and fused columns).
std::optional<rules::LayerStrategy> layerStrategyOf(const solve::Problem& problem, solve::NodeId node,
                                                    const graph::LayerShape& layer, rules::Strategy strategy,
                                                    const solve::Solution& solution);

}  // namespace cleave::plan
