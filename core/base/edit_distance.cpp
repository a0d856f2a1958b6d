#include "base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace cleave {

std::size_t editDistance(std::string_view a, std::string_view b, std::size_t limit) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
    if (*std::min_element(row.begin(), row.end()) >= limit) return limit;
  }
  return row.back();
}

std::string nearestName(std::string_view text, const std::vector<std::string>& names) {
  std::string nearest;
  std::size_t limit = (text.size() + 2) / 3 + 1;
  for (const std::string& name : names) {
    const std::size_t distance = editDistance(text, name, limit);
    if (distance >= limit) continue;
    limit = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace cleave
