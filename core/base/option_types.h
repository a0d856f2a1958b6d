#pragma once
/// What options of the programs take, as their help writes it and as shells complete it. An option says so by its type
/// name:
///
///     command.add_option("--json", json, "...")->type_name(option_types::kFileOrDash);
///     command.add_option("--mask", mask, "...")->type_name(option_types::oneOf({"on", "off"}));
#include <initializer_list>
#include <string>
#include <string_view>

namespace cleave::option_types {

// Parts of what a path may be stand between bars: FOLDER, FILE, an ending that files have, and - for a standard stream.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kFileOrDash = "FILE|-";
inline constexpr const char* kFolder = "FOLDER";
inline constexpr const char* kFileOrFolder = "FILE|FOLDER";
inline constexpr const char* kModel = "FOLDER|.pt2|.json|ORG/NAME";  ///< or a plan, where that will do
inline constexpr const char* kPlan = ".json";
inline constexpr const char* kOpened = "FOLDER|.pt2|.json|.trace";  ///< what the window opens

/// "{on,off}", as CLI::IsMember writes itself.
inline std::string oneOf(std::initializer_list<std::string_view> values) {
  std::string text = "{";
  for (const std::string_view value : values) text.append(text.size() > 1 ? "," : "").append(value);
  return text + "}";
}

}  // namespace cleave::option_types
