#include "exchange/stacks.h"

#include "exchange/styles.h"
#include "plan/text/block_names.h"

#include <algorithm>
#include <set>

namespace cleave::exchange {
namespace {

/// "model.layers.3.mlp.up_proj" → "model.layers.*" and 3; -1: the name has no number.
std::pair<std::string, int> blockAndIndex(const std::string& name) {
  const auto [pattern, index] = plan::foldIndex(name);
  if (index < 0) return {{}, -1};
  return {pattern.substr(0, pattern.find('#')) + "*", index};
}

/// Entries by wildcard name, in the order of the model.
std::vector<std::pair<std::string, std::vector<std::size_t>>> byPattern(const NamedStyles& said) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> patterns;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const std::string pattern = wildcardName(said[i].first);
    const auto [place, isNew] = places.try_emplace(pattern, patterns.size());
    if (isNew) patterns.push_back({pattern, {}});
    patterns[place->second].second.push_back(i);
  }
  return patterns;
}

using Block = std::map<std::string, std::string>;  ///< style by pattern, of one layer of a stack

}  // namespace

NamedStyles foldedByNumber(const NamedStyles& said) {
  NamedStyles folded;
  for (const auto& [pattern, places] : byPattern(said)) {
    const std::string& first = said[places.front()].second;
    // "ff.net.*" also matches activations beside the layers, because a name that ends in a number can be any module.
    const bool isAnyModule = pattern.ends_with('*') && places.size() > 1;
    if (!isAnyModule &&
        std::all_of(places.begin(), places.end(), [&](std::size_t i) { return said[i].second == first; })) {
      folded.emplace_back(pattern, first);
    } else {
      for (const std::size_t i : places) folded.push_back(said[i]);
    }
  }
  return folded;
}

FoldedByMost foldedByMost(const NamedStyles& said) {
  std::map<std::string, std::map<int, Block>> stacks;
  for (const auto& [name, style] : said) {
    const auto [stack, index] = blockAndIndex(name);
    if (index >= 0) stacks[stack][index][wildcardName(name)] = style;
  }
  FoldedByMost folded;
  std::map<std::string, std::string> styleOf;
  for (const auto& [stack, blocks] : stacks) {
    std::map<Block, std::vector<int>> alike;
    for (const auto& [index, block] : blocks) alike[block].push_back(index);
    std::vector<const std::pair<const Block, std::vector<int>>*> byCount;
    for (const auto& entry : alike) byCount.push_back(&entry);
    std::stable_sort(byCount.begin(), byCount.end(), [](const auto* a, const auto* b) {
      return a->second.size() != b->second.size() ? a->second.size() > b->second.size()
                                                  : a->second.front() < b->second.front();
    });
    std::set<int> others;
    for (const auto* entry : byCount) {
      for (const auto& [pattern, style] : entry->first) {
        if (styleOf.try_emplace(pattern, style).first->second != style)
          others.insert(entry->second.begin(), entry->second.end());
      }
    }
    if (!others.empty()) folded.others.emplace_back(stack, std::vector<int>(others.begin(), others.end()));
  }
  for (const auto& [pattern, places] : byPattern(said)) {
    const auto style = styleOf.find(pattern);
    folded.said.emplace_back(pattern, style != styleOf.end() ? style->second : said[places.front()].second);
  }
  return folded;
}

}  // namespace cleave::exchange
