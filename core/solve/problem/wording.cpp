#include "solve/problem/wording.h"

#include "base/quantities.h"

#include <algorithm>

namespace cleave::solve {

std::string inWords(const Placement& placement, const graph::Shape& shape) {
  if (placement.isReplicated()) return "replicated (R)";
  const int last = static_cast<int>(shape.size()) - 1;
  if (placement.firstDim() != placement.lastDim()) {
    return fmt::format("split over dimensions {} to {} ({})", placement.firstDim(), placement.lastDim(),
                       placement.text());
  }
  const std::string where = placement.firstDim() == last && last > 0
                                ? "its last dimension"
                                : fmt::format("dimension {}", placement.firstDim());
  const std::string_view how = !placement.blocks().empty() ? "split block by block"
                               : placement.replicas() > 1  ? "split with copies"
                               : placement.padding() > 0   ? "padded and split"
                                                           : "split";
  return fmt::format("{} on {} ({})", how, where, placement.text());
}

std::string ticked(std::string_view name) { return fmt::format("`{}`", name); }

std::string budgetName(const CostSettings& cost) {
  return fmt::format("{} of {}", cost.memoryBudget ? "the memory budget" : ticked(cost.profile.name),
                     bytesText(cost.budgetBytes()));
}

std::string nameOf(const Graph& graph, NodeId node, bool isLayer) {
  if (isLayer) return graph::layerName(graph, node);
  const auto& results = graph.node(node).results;
  return results.empty() ? graph.opName(graph.node(node)) : graph.value(results.front()).name;
}

std::string withThousands(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string withoutIndices(std::string_view name) {
  std::string pattern;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    const bool isIndex = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    pattern += at > 0 ? "." : "";
    pattern += isIndex ? "*" : part;
    at = end + 1;
  }
  return pattern;
}

std::string asClause(std::string sentence) {
  const auto isUpper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const bool isWord = sentence.size() > 1 && isUpper(sentence[0]) && !isUpper(sentence[1]);
  if (isWord) sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
  return sentence;
}

std::string joined(const std::vector<std::string>& items, std::string_view lastSeparator) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? fmt::format(" {} ", lastSeparator) : ", ";
    text += items[i];
  }
  return text;
}

}  // namespace cleave::solve
