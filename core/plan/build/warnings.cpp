#include "plan/build/warnings.h"
#include "base/quantities.h"
#include "graph/layers.h"
#include "graph/op_names.h"
#include "graph/operators.h"
#include "graph/weights.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"
#include "solve/problem/wording.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

namespace cleave::plan {
namespace {

bool isSplit(const LayerPlan& layer) { return std::holds_alternative<Split>(layer.replication); }
/// A layer that is replicated because that is best needs no warning.
bool isByChoice(const LayerPlan& layer) { return std::holds_alternative<DoesNotPay>(layer.replication); }

struct Group {
  std::string pattern, reason, firstName;
  std::size_t count = 0;
  std::int64_t bytes = 0;
};

/// Replicated layers with weights in graph order, one sentence for equal ones of repeated blocks; by choice or not.
std::vector<std::string> replicatedLayers(const Plan& plan, bool byChoice) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::size_t>, std::size_t> groupOf;
  for (const LayerPlan& layer : plan.layers) {
    if (isSplit(layer) || isByChoice(layer) != byChoice || layer.weight.empty()) continue;
    const auto shape = graph::layerShape(*plan.graph, layer.node);
    const std::string pattern = solve::withoutIndices(layer.name);
    const auto [entry, isNew] = groupOf.emplace(std::pair(pattern, layer.replication.index()), groups.size());
    if (isNew) groups.push_back({pattern, toText(layer.replication), layer.name});
    Group& group = groups[entry->second];
    ++group.count;
    group.bytes += graph::parameterBytes(*plan.graph, shape->weight);
  }
  std::vector<std::string> sentences;
  for (const Group& group : groups) {
    sentences.push_back(group.count == 1
                            ? fmt::format("{} ({} per rank) {}.", group.firstName, bytesText(group.bytes), group.reason)
                            : fmt::format("{} layers {} ({} per rank): the first {}.", group.count, group.pattern,
                                          bytesText(group.bytes), group.reason));
  }
  return sentences;
}

std::string nothingSplit(const Plan& plan) {
  std::optional<Femtoseconds> least;
  bool isAll = true;
  for (const LayerPlan& layer : plan.layers) {
    const auto* costs = std::get_if<DoesNotPay>(&layer.replication);
    isAll = isAll && costs;
    if (costs && (!least || costs->extraFs < *least)) least = costs->extraFs;
  }
  if (least && *least > 0) {
    return fmt::format(
        "No layer is split: on {} ranks of {}, splitting a layer{} costs at least {} per step, and this step takes {}. "
        "Peak memory per rank: {}. Pin the strategy of a layer to split it anyway.",
        plan.spec.ranks, plan.spec.cost.profile.name, isAll ? "" : " that can be split", solve::timeText(*least),
        solve::timeText(plan.cost.femtoseconds()), bytesText(plan.cost.bytes()));
  }
  const std::string why = plan.layers.empty() ? "the model has no layer that Cleave splits"
                                              : fmt::format("{} {}", solve::ticked(plan.layers.front().name),
                                                            toText(plan.layers.front().replication));
  const double share = plan.shares.flopsShare();
  const std::string except = share > 0 ? fmt::format(" except {} of the FLOPs", percentText(share)) : std::string();
  return fmt::format("{} is split: each of the {} ranks has all {} of parameters and does the same work{} ({}).",
                     except.empty() ? "Nothing" : "No weight", plan.spec.ranks, bytesText(plan.memory.parameters),
                     except, why);
}

/// "28 heads do not divide by 8 ranks, so every rank computes …". The count of split layers does not show it.
std::string replicatedWork(const Plan& plan, const ReplicatedWork& work) {
  const std::string what = modulesText(work);
  const std::string times = fmt::format("{} of each step's {}", solve::timeText(work.femtoseconds),
                                        solve::timeText(plan.cost.femtoseconds()));
  const auto* setting = std::get_if<NotAskedFor>(&work.why);
  if (setting && setting->why.empty())
    return fmt::format("Every rank computes all of {}, {}; {} it can be split.", what, times,
                       changesText(setting->changes));
  const std::string& why = setting ? setting->why : std::get<Cannot>(work.why).why;
  const std::string otherwise = setting ? fmt::format("; {} it can be split", changesText(setting->changes)) : "";
  const bool isCount = !why.empty() && why.front() >= '0' && why.front() <= '9';
  if (isCount) return fmt::format("{}, so every rank computes all of {}: {}{}.", why, what, times, otherwise);
  return fmt::format("Every rank computes all of {}, {}: {}{}.", what, times, why, otherwise);
}

/// Only `optimal` respects the budget. Empty: the plan fits.
std::string overBudget(const Plan& plan) {
  const std::int64_t needed = plan.cost.bytes(), budget = plan.spec.cost.budgetBytes();
  if (needed <= budget) return {};
  return fmt::format(
      "This plan needs {} per rank, {} more than {}. The engine {} ignores the budget; optimal respects it.",
      bytesText(needed), bytesText(needed - budget), solve::budgetName(plan.spec.cost),
      solve::toText(plan.spec.engine));
}

/// "2 operators, the first `rand` in `block.drop`"; empty if no operator matches.
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

/// Empty if the program draws no random numbers.
std::string randomNumbers(const graph::Graph& graph) {
  const std::string drawing = countedOperators(graph, [&](const graph::Node& node) {
    return graph::drawsNumbers(graph, node) && !graph::isDropout(graph, node);
  });
  if (drawing.empty()) return {};
  return fmt::format(
      "The program draws random numbers ({}). Only runs with the same seed agree, and these operators are not split.",
      drawing);
}

/// Empty unless checkpoints were asked for and no block has any.
std::string nothingCheckpointed(const Plan& plan) {
  if (!plan.spec.cost.isTraining || !plan.spec.cost.checkpointsActivations || !plan.checkpointed.empty()) return {};
  return "No activations are checkpointed: the model has no repeated blocks that save more than their inputs.";
}

/// Warns of dropout in the program, or of dropout that was asked for and has no effect.
std::string dropout(const Plan& plan) {
  if (plan.model.input.dropout)
    return plan.model.dropouts.empty() ? "Dropout has no effect: no dropout probability in config.json is above 0."
                                       : "";
  const graph::Graph& graph = *plan.graph;
  const std::string dropping =
      countedOperators(graph, [&](const graph::Node& node) { return graph::isDropout(graph, node); });
  if (dropping.empty()) return {};
  return fmt::format(
      "The program has dropout ({}). Runs with the same seed drop the same elements, split or not. Export the model in "
      "evaluation mode (model.eval()) to remove it.",
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
  if (plan.spec.ranks == 1) return warnings;
  for (const ReplicatedWork* work : indivisibleHeads(plan.shares)) warnings.push_back(replicatedWork(plan, *work));
  const bool splitsNothing = std::none_of(plan.layers.begin(), plan.layers.end(), isSplit);
  if (splitsNothing) warnings.push_back(nothingSplit(plan));
  for (std::string& sentence : replicatedLayers(plan, false)) warnings.push_back(std::move(sentence));
  return warnings;
}

}  // namespace cleave::plan
