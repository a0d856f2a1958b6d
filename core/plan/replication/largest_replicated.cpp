#include "plan/replication/largest_replicated.h"

#include "base/checked.h"
#include "graph/layers.h"
#include "graph/weights.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace cleave::plan {

using graph::Graph;
using graph::NodeId;

std::optional<WholeWeights> largestReplicated(const solve::Problem& problem, const solve::Solution& solution) {
  const Graph& graph = *problem.graph;
  const int ranks = problem.context.worldSize;
  if (ranks == 1) return std::nullopt;
  std::map<std::string, WholeWeights> wholeOf;
  for (const graph::Node& node : graph.nodes) {
    if (node.kind != graph::NodeKind::Parameter) continue;
    const graph::ValueId parameter = node.results[0];
    const std::int64_t all = graph.heldBytes(parameter);
    const auto count = solution.of(parameter).localCount(graph.shapeOf(parameter), ranks);
    if (graph.heldBytes(parameter, count) < all) continue;
    const std::string& name = graph.value(parameter).name;
    const std::string pattern = solve::withoutIndices(name.substr(0, std::min(name.size(), name.rfind('.'))));
    WholeWeights& whole = wholeOf[pattern];
    whole.pattern = pattern;
    ++whole.count;
    whole.bytes = saturatingAdd(whole.bytes, all);
    if (!whole.first.isValid() || all > graph.heldBytes(whole.first)) whole.first = parameter;
  }
  const auto largest = std::max_element(wholeOf.begin(), wholeOf.end(),
                                        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (largest == wholeOf.end() || largest->second.bytes == 0) return std::nullopt;
  return largest->second;
}

NodeId mainReader(const Graph& graph, graph::ValueId parameter) {
  constexpr std::size_t kMaxPathLength = 16;
  std::vector<graph::ValueId> way{parameter};
  for (std::size_t at = 0; at < way.size() && at < kMaxPathLength; ++at) {
    for (const NodeId user : graph.value(way[at]).users) {
      if (graph::layerShape(graph, user)) return user;
      for (const graph::ValueId made : graph.node(user).results) {
        if (graph::isWeight(graph, made) && std::find(way.begin(), way.end(), made) == way.end()) way.push_back(made);
      }
    }
  }
  const auto& users = graph.value(parameter).users;
  return users.empty() ? NodeId() : users.front();
}

}  // namespace cleave::plan
