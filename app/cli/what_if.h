#pragma once
/// The parts of `cleave-cli plan` that answer more than one plan: comparisons, world sizes, pre-flight, time against
/// memory.
#include "cli/planning.h"

namespace cleave::cli {

/// `--compare A,B[,C…]`: each an engine or a plan file; the first is what the others are measured against.
Result<int> comparePlans(const PlanFlags& flags, const std::string& sides, const std::string& json,
                         const Progress& progress);
/// `--world-sizes [1-64]`: which world sizes work, and why not the others.
Result<int> showWorldSizes(const PlanFlags& flags, const std::string& sizes, const std::string& json,
                           const Progress& progress);
/// `--preflight`: what can be said before any search.
Result<int> showPreflight(const PlanFlags& flags, const std::string& json, const Progress& progress);
/// `--pareto`: the front of time against memory.
Result<int> showFront(const PlanFlags& flags, const std::string& json, const Progress& progress);
/// `--best K`: the plan and the K - 1 fastest others that differ in some layer's strategy (Optimum::best).
Result<int> showBest(const PlanFlags& flags, std::size_t count, const std::string& json, const Progress& progress);

/// "1-8,16" as numbers, ascending, each once; BadUsage says what is wrong.
Result<std::vector<int>> parseSizes(const std::string& text);

}  // namespace cleave::cli
