#pragma once
/// Patterns in which `*` matches any characters, also zero.
#include <string_view>

namespace cleave {

/// True if the pattern matches the whole name.
bool matchesWildcard(std::string_view pattern, std::string_view name);

}  // namespace cleave
