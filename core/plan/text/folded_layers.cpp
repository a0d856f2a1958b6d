#include "plan/text/folded_layers.h"

#include "plan/text/block_names.h"

#include <map>
#include <regex>

namespace cleave::plan {
namespace {

/// The same reason in two equal layers names other values: "add_3" and "add_9" count as one.
std::string withoutNumbers(const std::string& text) {
  static const std::regex kNumber(R"((_|\.)\d+)");
  return std::regex_replace(text, kNumber, "$1#");
}

std::string strategyText(const LayerPlan& layer) {
  const bool isCopied = layer.axis == "replicated" && rules::axisOf(layer.strategy) != "replicated";
  return isCopied ? layer.axis : std::string(rules::toText(layer.strategy));
}

}  // namespace

std::vector<FoldedLayer> foldedLayers(const Plan& plan) {
  std::vector<FoldedLayer> folded;
  std::vector<std::vector<int>> indices;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const LayerPlan& layer : plan.layers) {
    auto [pattern, index] = foldIndex(layer.name);
    std::string strategy = strategyText(layer);
    const auto [entry, isNew] =
        known.emplace(std::pair(pattern, withoutNumbers(strategy + layer.reason)), folded.size());
    if (isNew) {
      folded.push_back({std::move(pattern), std::move(strategy), layer.reason});
      indices.emplace_back();
    }
    if (index >= 0) indices[entry->second].push_back(index);
  }
  for (std::size_t i = 0; i < folded.size(); ++i) folded[i].name = foldedName(folded[i].name, indices[i]);
  return folded;
}

}  // namespace cleave::plan
