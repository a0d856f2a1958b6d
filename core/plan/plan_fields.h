#pragma once
/// Two plans field by field, as their files have them.
///
/// A plan file holds much that follows from the rest: figures, reasons, the graphs. Whoever wants to know whether it is
/// true makes the plan again and compares every field; order and spacing do not matter.
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

/// What no two makings of a plan have the same.
inline constexpr std::array<std::string_view, 2> kMeasuredFields{"plan.timings_ms", "plan.seal"};
/// What another version of Cleave may word or count otherwise though its plan is the same: sentences, and how much was
/// searched.
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
  std::string file, again;  ///< the two values in words; "nothing" where one lacks the field
};

/// In the order in which `again` has its fields. `leftOut`: paths that are not compared, nor what lies below them;
/// "[*]" in one stands for any item.
std::vector<FieldDifference> differingFields(const nlohmann::json& file, const nlohmann::ordered_json& again,
                                             std::span<const std::string_view> leftOut);

}  // namespace cleave::plan
