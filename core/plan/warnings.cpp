#include "base/quantities.h"
#include "graph/layers.h"
#include "graph/operators.h"
#include "graph/weights.h"
#include "plan/steps.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

namespace cleave::plan {
namespace {

bool isSplit(const LayerPlan& layer) { return std::holds_alternative<Split>(layer.standing); }
/// Whole because that is best is no cause for a warning.
bool isByChoice(const LayerPlan& layer) { return std::holds_alternative<DoesNotPay>(layer.standing); }

struct Group {
  std::string pattern, reason, firstName;
  std::size_t count = 0;
  std::int64_t bytes = 0;
};

/// Whole layers with weights, one sentence for equal ones of repeated blocks, in graph order; by choice or not.
std::vector<std::string> replicatedLayers(const Plan& plan, bool byChoice) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::size_t>, std::size_t> groupOf;
  for (const LayerPlan& layer : plan.layers) {
    if (isSplit(layer) || isByChoice(layer) != byChoice || layer.weight.empty()) continue;
    const auto shape = graph::layerShape(*plan.graph, layer.node);
    const std::string pattern = solve::withoutIndices(layer.name);
    const auto [entry, isNew] = groupOf.emplace(std::pair(pattern, layer.standing.index()), groups.size());
    if (isNew) groups.push_back({pattern, toText(layer.standing), layer.name});
    Group& group = groups[entry->second];
    ++group.count;
    group.bytes += graph::parameterBytes(*plan.graph, shape->weight);
  }
  std::vector<std::string> sentences;
  for (const Group& group : groups) {
    sentences.push_back(group.count == 1
                            ? fmt::format("{} stays replicated, {} on every rank: it {}.", group.firstName,
                                          bytesText(group.bytes), group.reason)
                            : fmt::format("{} layers {} stay replicated, {} on every rank: the first {}.", group.count,
                                          group.pattern, bytesText(group.bytes), group.reason));
  }
  return sentences;
}

std::string nothingSplit(const Plan& plan) {
  std::optional<Femtoseconds> least;
  bool isAll = true;
  for (const LayerPlan& layer : plan.layers) {
    const auto* costs = std::get_if<DoesNotPay>(&layer.standing);
    isAll = isAll && costs;
    if (costs && (!least || costs->extraFs < *least)) least = costs->extraFs;
  }
  if (least && *least > 0) {
    const std::string some =
        isAll ? ": a plan that splits a layer" : ", where it can be: a plan that splits a layer which can be";
    return fmt::format(
        "No layer is split, because it does not pay on {} ranks of {}{} takes at least {} longer than this step of {}. "
        "Each rank holds {}. Pin the strategy of {} to split it anyway.",
        plan.ranks, plan.costSettings.profile.name, some, solve::timeText(*least),
        solve::timeText(plan.cost.femtoseconds()), bytesText(plan.cost.bytes()), isAll ? "a layer" : "such a layer");
  }
  const std::string why = plan.layers.empty() ? "the model has no layer that Cleave splits"
                                              : fmt::format("{} {}", solve::ticked(plan.layers.front().name),
                                                            toText(plan.layers.front().standing));
  const double share = plan.shares.flopsShare();
  const std::string but = share > 0 ? fmt::format(" but for {} of the FLOPs", percentText(share)) : std::string();
  return fmt::format("{} is split: each of the {} ranks holds all {} of parameters and computes the same{} ({}).",
                     but.empty() ? "Nothing" : "No weight", plan.ranks, bytesText(plan.memory.parameters), but, why);
}

/// "28 heads do not divide by 8 ranks, so every rank computes …": what a count of split layers hides.
std::string replicatedWork(const Plan& plan, const ReplicatedWork& work) {
  const std::string what = modulesText(work);
  const std::string times = fmt::format("{} of each step's {}", solve::timeText(work.femtoseconds),
                                        solve::timeText(plan.cost.femtoseconds()));
  const auto* setting = std::get_if<NotAskedFor>(&work.why);
  if (setting && setting->why.empty())
    return fmt::format("Every rank computes all of {}, {}: {} it can be split.", what, times,
                       changesText(setting->changes));
  const std::string& why = setting ? setting->why : std::get<Cannot>(work.why).why;
  const std::string otherwise = setting ? fmt::format("; {} it can be split", changesText(setting->changes)) : "";
  const bool isCount = !why.empty() && why.front() >= '0' && why.front() <= '9';
  if (isCount) return fmt::format("{}, so every rank computes all of {}: {}{}.", why, what, times, otherwise);
  return fmt::format("Every rank computes all of {}, {}: {}{}.", what, times, why, otherwise);
}

/// Only `optimal` keeps a budget; what others find may hold more. Empty: it fits.
std::string overBudget(const Plan& plan) {
  const std::int64_t needed = plan.cost.bytes(), budget = plan.costSettings.budgetBytes();
  if (needed <= budget) return {};
  return fmt::format(
      "This plan needs {} on each rank, {} more than {}: the engine {} does not search under a budget, optimal does.",
      bytesText(needed), bytesText(needed - budget), solve::budgetName(plan.costSettings), solve::toText(plan.engine));
}

/// Operators of one kind: "2 operators, the first `rand` in `block.drop`"; empty: none.
std::string countedOperators(const graph::Graph& graph, const std::function<bool(const graph::Node&)>& isOne) {
  std::int64_t count = 0;
  const graph::Node* first = nullptr;
  for (const graph::Node& node : graph.nodes) {
    if (!isOne(node)) continue;
    if (count++ == 0) first = &node;
  }
  if (count == 0) return {};
  const std::string& path = graph.scope(first->scope).path;
  const std::string where = path.empty() ? std::string() : fmt::format(" in {}", solve::ticked(path));
  return fmt::format("{}, the first `{}`{}", counted(count, "operator"), graph::withoutNamespace(graph.opName(*first)),
                     where);
}

/// Empty: nothing does.
std::string randomNumbers(const graph::Graph& graph) {
  const std::string drawing = countedOperators(graph, [&](const graph::Node& node) {
    return graph::drawsNumbers(graph, node) && !graph::isDropout(graph, node);
  });
  if (drawing.empty()) return {};
  return fmt::format(
      "The program draws random numbers ({}), so that only runs with the same seed agree, and what draws them is not "
      "split.",
      drawing);
}

/// Empty: what was asked for is done.
std::string nothingCheckpointed(const Plan& plan) {
  if (!plan.costSettings.isTraining || !plan.costSettings.checkpointsActivations || !plan.checkpointed.empty())
    return {};
  return "Nothing is checkpointed: the model has no list of blocks that keep more than what comes into them.";
}

/// Dropout that nobody asked for; where somebody did, that there is none.
std::string dropout(const Plan& plan) {
  if (plan.model.hasDropout)
    return plan.model.dropouts.empty() ? "Dropout changes nothing: no probability of it in config.json is above 0."
                                       : "";
  const graph::Graph& graph = *plan.graph;
  const std::string dropping =
      countedOperators(graph, [&](const graph::Node& node) { return graph::isDropout(graph, node); });
  if (dropping.empty()) return {};
  return fmt::format(
      "The program has dropout ({}). Runs with the same seed drop the same, split or not. A model that is exported in "
      "evaluation mode (model.eval()) has none.",
      dropping);
}

}  // namespace

std::vector<std::string> replicatedByChoice(const Plan& plan) { return replicatedLayers(plan, true); }

std::vector<std::string> warningsFor(const Plan& plan) {
  std::vector<std::string> warnings;
  if (const std::string_view broken = rules::brokenRule(); !broken.empty())
    warnings.push_back(fmt::format(
        "CLEAVE_TEST_BROKEN_RULE breaks the rule of `{}` on purpose: the split model may compute something else.",
        broken));
  if (const std::string sentence = overBudget(plan); !sentence.empty()) warnings.push_back(sentence);
  for (std::string& sentence : std::array{randomNumbers(*plan.graph), dropout(plan), nothingCheckpointed(plan)}) {
    if (!sentence.empty()) warnings.push_back(std::move(sentence));
  }
  if (plan.ranks == 1) return warnings;
  for (const ReplicatedWork* work : indivisibleHeads(plan.shares)) warnings.push_back(replicatedWork(plan, *work));
  const bool splitsNothing = std::none_of(plan.layers.begin(), plan.layers.end(), isSplit);
  if (splitsNothing) warnings.push_back(nothingSplit(plan));
  for (std::string& sentence : replicatedLayers(plan, false)) warnings.push_back(std::move(sentence));
  return warnings;
}

}  // namespace cleave::plan
