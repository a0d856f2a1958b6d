#pragma once
/// Answers to questions about the plans of a model: comparisons, world sizes, pre-flight, time against memory. Each
/// prints its answer as text, and as JSON where `json` names a file or "-".
#include "cli/planning.h"

namespace cleave::cli {

/// Largest number of plans that `best` lists.
inline constexpr std::size_t kMostBestPlans = 1000;
/// World sizes that are tried by default.
inline constexpr const char* kListedSizes = "1-64";

/// `names`: engines or plan files; the others are compared with the first.
Result<int> comparePlans(const PlanSettings& asked, const std::vector<std::string>& names, const std::string& json,
                         const Progress& progress);
/// `sizes`: "1-8,16"; empty: kListedSizes.
Result<int> showWorldSizes(const PlanSettings& asked, const std::string& sizes, const std::string& json,
                           const Progress& progress);
/// What is known without a search.
Result<int> showPreflight(const PlanSettings& asked, const std::string& json, const Progress& progress);
/// The Pareto front of time and memory.
Result<int> showFront(const PlanSettings& asked, const std::string& json, const Progress& progress);
/// The best plan and the `count` - 1 next best that differ in some layer's strategy (Optimum::best).
Result<int> showBest(const PlanSettings& asked, std::size_t count, const std::string& json, const Progress& progress);

/// "1-8,16" as numbers, ascending, each once; BadUsage names the text.
Result<std::vector<int>> parseSizes(const std::string& text);

}  // namespace cleave::cli
