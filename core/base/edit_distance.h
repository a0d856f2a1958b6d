#pragma once
/// Distance between a name and others that may have been meant.
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace cleave {

/// Levenshtein distance: the number of letters added, left out or replaced. Returns `limit` as soon as the distance
/// cannot be smaller.
std::size_t editDistance(std::string_view a, std::string_view b,
                         std::size_t limit = std::numeric_limits<std::size_t>::max());

/// The name with the least distance, the first of several. Empty: in all names, more than a third of the letters
/// differ, rounded up.
std::string nearestName(std::string_view text, const std::vector<std::string>& names);

}  // namespace cleave
