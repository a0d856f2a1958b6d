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
  const auto at = [](const auto& list, std::size_t i) {
    return i < list.size() ? list[i] : typename std::decay_t<decltype(list)>::value_type();
  };
  std::vector<NodeId> nodes;
  for (const NodeId node : idRange<NodeId>(graph.nodes.size())) {
    const auto& results = graph.node(node).results;
    const bool isSame = at(from.strategies, node.index()) == at(after.strategies, node.index()) &&
                        std::all_of(results.begin(), results.end(), [&](ValueId value) {
                          return at(from.placements, value.index()) == at(after.placements, value.index());
                        });
    if (!isSame) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace cleave::views
