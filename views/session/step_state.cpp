#include "views/session/step_state.h"

#include <algorithm>

namespace cleave::views {

NodeId nodeOf(const solve::Event& event) {
  if (event.type > solve::EventType::Backtrack) return {};
  return NodeId(event.type == solve::EventType::Backtrack ? event.target : event.node);
}

std::vector<NodeId> changedNodes(const graph::Graph& graph, const StepState* before, const StepState& after) {
  static const StepState kNothing;
  const StepState& from = before ? *before : kNothing;
  const auto forDifferent = [](const auto& a, const auto& b, const auto& visit) {
    const auto at = [](const auto& list, std::size_t i) {
      return i < list.size() ? list[i] : typename std::decay_t<decltype(list)>::value_type();
    };
    const std::size_t both = std::min(a.size(), b.size());
    for (std::size_t i = 0; i < both; ++i)
      if (a[i] != b[i]) visit(i);
    for (std::size_t i = both; i < std::max(a.size(), b.size()); ++i)
      if (at(a, i) != at(b, i)) visit(i);
  };
  std::vector<NodeId> nodes;
  forDifferent(from.placements, after.placements,
               [&](std::size_t i) { nodes.push_back(graph.value(ValueId(i)).producer); });
  forDifferent(from.strategies, after.strategies, [&](std::size_t i) { nodes.push_back(NodeId(i)); });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace cleave::views
