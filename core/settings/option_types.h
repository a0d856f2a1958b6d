#pragma once
/// Types of option values, for the help text and for shell completion. An option sets one as its type name:
///
///     command.add_option("--json", json, "...")->type_name(option_types::kFileOrDash);
///     command.add_option("--mask", mask, "...")->type_name(option_types::oneOf({"on", "off"}));
#include <initializer_list>
#include <string>
#include <string_view>

namespace cleave::option_types {

// A bar separates the alternatives for a path: FOLDER, FILE, an extension, and - for a standard stream.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kFileOrDash = "FILE|-";
inline constexpr const char* kFolder = "FOLDER";
inline constexpr const char* kFileOrFolder = "FILE|FOLDER";
inline constexpr const char* kModel = "FOLDER|.pt2|.json|ORG/NAME";  ///< model; some commands also accept a plan
inline constexpr const char* kPlan = ".json";
inline constexpr const char* kOpened = "FOLDER|.pt2|.json|.trace";  ///< files that the window opens

/// "{on,off}", as CLI::IsMember writes itself.
inline std::string oneOf(std::initializer_list<std::string_view> values) {
  std::string text = "{";
  for (const std::string_view value : values) text.append(text.size() > 1 ? "," : "").append(value);
  return text + "}";
}

}  // namespace cleave::option_types
