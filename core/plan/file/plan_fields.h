#pragma once
/// Compares two plans field by field, in the form of their files.
///
/// Most of a plan file follows from the rest: figures, reasons, the graphs. `check` makes the plan again and compares
/// every field. Order and spacing do not matter.
///
///     const auto different = differingFields(fileJson, nlohmann::ordered_json::parse(toJson(again)), kMeasuredFields);
///     // {{"plan.cost.step_fs", "5", "7"}}
#include <nlohmann/json_fwd.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::plan {

/// Fields that differ each time a plan is made.
inline constexpr std::array<std::string_view, 2> kMeasuredFields{"plan.timings_ms", "plan.seal"};
/// Fields that may differ between versions of Cleave for the same plan: sentences, and the effort of the search.
inline constexpr std::array<std::string_view, 8> kFieldsOfTheVersion{"plan.made_by",
                                                                     "plan.warnings",
                                                                     "plan.search",
                                                                     "plan.layers[*].reason",
                                                                     "plan.layers[*].standing.why",
                                                                     "plan.shares.gathered_layers",
                                                                     "plan.shares.largest_replicated",
                                                                     "plan.shares.replicated[*].standing.why"};

struct FieldDifference {
  std::string path;         ///< "plan.layers[3].strategy"
  std::string file, again;  ///< the two values as text; "nothing" for a missing field
};

/// In the order of the fields of `again`. `leftOut`: paths that are not compared, with everything below them; "[*]"
/// matches any item.
std::vector<FieldDifference> differingFields(const nlohmann::json& file, const nlohmann::ordered_json& again,
                                             std::span<const std::string_view> leftOut);

}  // namespace cleave::plan
