#include "solve/optimal/over_budget_text.h"

#include "base/checked.h"
#include "base/quantities.h"
#include "solve/cost/memory_parts.h"
#include "solve/cost/peak.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostHolders = 3;

/// The name that groups the memory of a node: its layer, or the module of an operator between layers.
std::string holderOf(const Context& context, NodeId node) {
  const Graph& graph = *context.problem.graph;
  const bool isLayer = context.variables.layer(node).has_value();
  const std::string& module = graph.scope(graph.node(node).scope).path;
  const bool isBetween = !isLayer && graph.node(node).kind == graph::NodeKind::Call && !module.empty();
  return withoutIndices(isBetween ? module : nameOf(graph, node, isLayer));
}

/// " Most of the memory that stays for the whole step belongs to `model.layers.*.mlp.up_proj` (80 nodes, 17.5 GiB) and
/// `lm_head` (1.96 GiB)."
std::string largestHolders(const Context& context, const Solution& solution) {
  struct Group {
    std::string pattern;
    std::size_t count = 0;
    std::int64_t bytes = 0;
  };
  const auto costs = context.model.byNode(solution);
  std::vector<Group> groups;
  for (const NodeId node : context.variables.deciders()) {
    const std::int64_t bytes = costs[node.index()].bytes();
    if (bytes == 0) continue;
    const std::string pattern = holderOf(context, node);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group& known) { return known.pattern == pattern; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{pattern});
    ++group->count;
    group->bytes += bytes;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  std::vector<std::string> parts;
  std::int64_t all = 0, named = 0;
  for (const Group& group : groups) all = saturatingAdd(all, group.bytes);
  for (std::size_t i = 0; i < std::min(groups.size(), kMostHolders); ++i) {
    const std::string times = groups[i].count > 1 ? fmt::format("{} nodes, ", groups[i].count) : "";
    named = saturatingAdd(named, groups[i].bytes);
    parts.push_back(fmt::format("{} ({}{})", ticked(groups[i].pattern), times, bytesText(groups[i].bytes)));
  }
  if (parts.empty()) return {};
  return fmt::format(" {} of the memory that stays for the whole step belongs to {}.",
                     named > all / 2 ? "Most" : "The largest part", joined(parts, "and"));
}

}  // namespace

std::string overBudgetSentence(const Eliminated& optimum, const Found& found) {
  const Context& context = optimum.context();
  const Problem& problem = context.problem;
  const std::int64_t budget = problem.cost.budgetBytes(), needs = found.cost.bytes(),
                     stays = found.cost.additiveBytes();
  const int ranks = problem.context.worldSize;
  const std::string where = fmt::format("per rank on {}", counted(ranks, "rank"));
  std::string text =
      found.isProved
          ? fmt::format("Every plan needs more than the budget of {} {}.", bytesText(budget), where)
          : fmt::format(
                "No plan found within the budget of {} {}. The search stopped at its limit of {}, so one may "
                "still exist.",
                bytesText(budget), where, optimum.limitText());
  text += fmt::format(" The smallest plan found is {} too large. It needs {}.", bytesText(needs - budget),
                      memoryText(found.cost));
  if (stays > budget || stays > needs / 2) {
    text += largestHolders(context, optimum.solution());
  }
  if (stays <= budget || found.cost.transientPeak > needs / 2) {
    text += fmt::format(" The transient peak is {}.",
                        toText(*problem.graph, peakOf(problem, context.variables, optimum.solution())));
  }
  return text;
}

}  // namespace cleave::solve::optimal
