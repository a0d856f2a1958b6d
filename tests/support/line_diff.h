#pragma once
/// A diff of two texts by line: common lines start with a blank, removed ones with `-`, added ones with `+`.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cleave::test {

/// Shows two common lines around each difference.
inline std::string lineDiff(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  // common[i][j]: length of the longest common subsequence of before[i..] and after[j..].
  std::vector<std::vector<int>> common(before.size() + 1, std::vector<int>(after.size() + 1, 0));
  for (std::size_t i = before.size(); i-- > 0;) {
    for (std::size_t j = after.size(); j-- > 0;) {
      common[i][j] = before[i] == after[j] ? 1 + common[i + 1][j + 1] : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::vector<std::string> lines;
  std::vector<std::size_t> differences;
  std::size_t i = 0, j = 0;
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && j < after.size() && before[i] == after[j]) {
      lines.push_back("  " + before[i++]);
      ++j;
      continue;
    }
    differences.push_back(lines.size());
    const bool isBefore = j == after.size() || (i < before.size() && common[i + 1][j] >= common[i][j + 1]);
    lines.push_back(isBefore ? "- " + before[i++] : "+ " + after[j++]);
  }
  std::string text;
  std::size_t shown = 0;
  for (const std::size_t difference : differences) {
    const std::size_t from = std::max(shown, difference - std::min<std::size_t>(difference, 2));
    if (from > shown) text += "  ...\n";
    for (shown = from; shown < std::min(difference + 3, lines.size()); ++shown) text += lines[shown] + "\n";
  }
  return text + (shown < lines.size() ? "  ...\n" : "");
}

}  // namespace cleave::test
