#pragma once
/// How far a name is from another that may have been meant.
#include <cstddef>
#include <string_view>

namespace cleave {

/// Levenshtein's distance: letters that are added, left out or replaced.
std::size_t editDistance(std::string_view a, std::string_view b);

}  // namespace cleave
