#pragma once
/// How far a name is from another that may have been meant.
#include <cstddef>
#include <limits>
#include <string_view>

namespace cleave {

/// Levenshtein's distance: letters that are added, left out or replaced. Given up, and `limit`, once it cannot be less
/// than that.
std::size_t editDistance(std::string_view a, std::string_view b,
                         std::size_t limit = std::numeric_limits<std::size_t>::max());

}  // namespace cleave
