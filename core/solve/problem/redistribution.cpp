#include "solve/problem/redistribution.h"

namespace cleave::solve {
namespace {

/// The clause after the choice's own reason. It does not name the value, because equal steps share their choices.
std::string changeText(std::size_t result, std::size_t results, const Placement& computed, const Placement& seen) {
  const std::string what = results == 1 ? "the result" : fmt::format("result {}", result + 1);
  if (seen.isReplicated()) return fmt::format("then {} is gathered from {} to R", what, computed.text());
  return fmt::format("then each rank keeps its part of {} ({})", what, seen.text());
}

/// Appends every redistribution of `plain`. Each changes at least one result.
void appendRedistributed(const Problem& problem, const Variables& variables, NodeId node, const Choice& plain,
                         std::vector<Choice>& found) {
  const Graph& graph = *problem.graph;
  const auto& results = graph.node(node).results;
  std::vector<std::vector<Placement>> ways;  // by result: the computed placement, then each redistribution
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto& way = ways.emplace_back(1, plain.results[i]);
    if (!variables.isRedistributable(results[i])) continue;
    for (Placement& seen : redistributed(plain.results[i], graph.shapeOf(results[i]), problem.context.worldSize))
      way.push_back(std::move(seen));
  }
  // Goes through all combinations; the last result changes fastest. The first combination is the plain choice.
  std::vector<std::size_t> at(results.size(), 0);
  const auto advance = [&] {
    for (std::size_t i = results.size(); i-- > 0;) {
      if (++at[i] < ways[i].size()) return true;
      at[i] = 0;
    }
    return false;
  };
  while (advance() && found.size() < kMostRedistributions) {
    Choice changed = plain;
    changed.computedAs = plain.results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (at[i] == 0) continue;
      changed.results[i] = ways[i][at[i]];
      changed.reason +=
          (changed.reason.empty() ? "" : "; ") + changeText(i, results.size(), plain.results[i], changed.results[i]);
    }
    found.push_back(std::move(changed));
  }
}

}  // namespace

std::vector<Placement> redistributed(const Placement& computed, const graph::Shape& shape, int ranks) {
  std::vector<Placement> seen;
  if (ranks <= 1) return seen;
  if (computed.isPlainSplit()) seen.emplace_back();
  if (!computed.isReplicated()) return seen;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const Placement split = Placement::split(d);
    if (split.localShape(shape, ranks)) seen.push_back(split);
  }
  return seen;
}

std::vector<Choice> withRedistributions(const Problem& problem, const Variables& variables, NodeId node,
                                        std::vector<Choice> plain) {
  if (!variables.redistributes(node)) return plain;
  std::vector<Choice> found = plain;
  for (const Choice& choice : plain) appendRedistributed(problem, variables, node, choice, found);
  return found;
}

std::string placementText(const Placement& computed, const Placement& seen) {
  if (computed == seen) return seen.text();
  return fmt::format("{}, then {} ({})", computed.text(), seen.isReplicated() ? "gathered" : "cut", seen.text());
}

std::string placementText(const Choice& choice, std::size_t result) {
  const Placement& seen = choice.results[result];
  return placementText(choice.computedAs.empty() ? seen : choice.computedAs[result], seen);
}

}  // namespace cleave::solve
