#pragma once
/// Patterns in which `*` matches any characters, none included.
#include <string_view>

namespace cleave {

/// True when the pattern covers the whole name.
bool matchesWildcard(std::string_view pattern, std::string_view name);

}  // namespace cleave
