#include "families/near_names.h"
#include "families/family_table.h"

#include "base/edit_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cleave::families {
namespace {

constexpr std::size_t kMostNear = 3;
constexpr std::size_t kLongestName = 100;

/// Distance between `asked` and `known`; nullopt if they are not similar.
std::optional<std::size_t> distance(std::string_view asked, std::string_view known) {
  if (asked.empty() || asked.size() > kLongestName) return std::nullopt;
  if (asked.starts_with(known) || known.starts_with(asked))
    return std::max(asked.size(), known.size()) - std::min(asked.size(), known.size());
  const std::size_t letters = editDistance(asked, known);
  return letters <= asked.size() / 4 ? std::optional(letters) : std::nullopt;
}

std::vector<const Family*> nearest(std::string_view asked, std::string_view Family::*name) {
  std::vector<std::pair<std::size_t, const Family*>> near;
  for (const Family* family : families()) {
    if (const auto far = distance(asked, family->*name)) near.emplace_back(*far, family);
  }
  std::ranges::stable_sort(near, {}, &std::pair<std::size_t, const Family*>::first);
  std::vector<const Family*> found;
  for (const auto& [far, family] : near) {
    if (found.size() < kMostNear) found.push_back(family);
  }
  return found;
}

}  // namespace

std::vector<const Family*> nearFamilies(std::string_view modelType, std::string_view className) {
  auto found = nearest(modelType, &Family::modelType);
  return found.empty() ? nearest(className.substr(0, className.find("For")), &Family::classPrefix) : found;
}

std::string listOfFamilies() {
  std::size_t width = 0;
  for (const Family* family : families()) {
    for (const HeadClass& head : family->heads) width = std::max(width, head.className.size());
  }
  std::string text;
  for (const Family* family : families()) {
    for (const HeadClass& head : family->heads)
      text += fmt::format("{:<{}}  {}\n", head.className, width, family->modelType);
  }
  return text;
}

}  // namespace cleave::families
