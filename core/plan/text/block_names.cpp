#include "plan/text/block_names.h"

#include <regex>

namespace cleave::plan {
namespace {

/// {0,1,2,5} → "0-2,5"
std::string indexText(const std::vector<int>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i;
    while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(indices[i]);
    if (end > i) text += "-" + std::to_string(indices[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace

std::pair<std::string, int> foldIndex(const std::string& name) {
  static const std::regex kIndex(R"((^|\.)(\d{1,6})(\.|$))");
  std::smatch match;
  if (!std::regex_search(name, match, kIndex)) return {name, -1};
  const int index = std::stoi(match[2].str());
  return {match.prefix().str() + match[1].str() + "#" + match[3].str() + match.suffix().str(), index};
}

std::string foldedName(std::string pattern, const std::vector<int>& indices) {
  const auto mark = pattern.find('#');
  if (mark != std::string::npos)
    pattern.replace(mark, 1, indices.size() == 1 ? indexText(indices) : "{" + indexText(indices) + "}");
  return pattern;
}

}  // namespace cleave::plan
