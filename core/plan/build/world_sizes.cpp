#include "plan/build/world_sizes.h"

#include "base/quantities.h"
#include "graph/attention.h"
#include "graph/layers.h"
#include "plan/build/measure_shares.h"
#include "plan/build/preflight.h"
#include "plan/replication/choice_splits.h"
#include "plan/replication/one_rank_cost.h"
#include "plan/replication/replication_search.h"
#include "plan/text/heads_text.h"
#include "plan/text/reason_text.h"
#include "plan/text/shares_text.h"
#include "solve/problem/wording.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;

constexpr std::int64_t kLeastShareNamed = 10;  // names replicated weights from a tenth of the excess

/// The result for one world size.
struct Tried {
  WorldSize size;
  std::vector<ReplicationReason> mainParts;  ///< in the order of `mainParts()`; empty without a plan
};

/// The nodes that decide the verdict: layers with weights, and attention. All other work is small.
std::vector<NodeId> mainParts(const Graph& graph) {
  std::vector<NodeId> parts;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, n);
    if ((layer && layer->weight.isValid()) || graph::headsOf(graph, n)) parts.push_back(n);
  }
  return parts;
}

void setFigures(const solve::Problem& problem, const solve::SolveResult& result, WorldSize& size) {
  const Shares shares = sharesOf(problem, *result.solution, {});
  const solve::PlanCost cost = result.optimum ? result.optimum->cost() : solve::costOf(problem, *result.solution);
  size.hasPlan = true;
  size.layers = shares.layers;
  size.flopsShare = shares.flopsShare();
  size.weightShare = shares.weightShare();
  size.replicatedFs = shares.replicatedFs;
  size.rankBytes = cost.bytes();
  size.femtoseconds = cost.femtoseconds();
  size.overBytes = std::max<std::int64_t>(0, cost.bytes() - problem.cost.budgetBytes());
}

void setFailure(const solve::Problem& problem, const Result<solve::SolveResult>& result, WorldSize& size) {
  size.verdict = WorldSizeVerdict::NoSolution;
  if (!result) return void(size.why = result.error().message);
  const auto& core = result->core.constraints;
  const bool isBudget = std::any_of(core.begin(), core.end(),
                                    [](const solve::Constraint& c) { return c.kind == solve::ConstraintKind::Budget; });
  if (isBudget) {
    size.verdict = WorldSizeVerdict::OverBudget;
    size.rankBytes = result->leastBytes;
    size.overBytes = result->leastBytes - problem.cost.budgetBytes();
    size.isProved = result->isProved;
  }
  size.why = result->causes.empty() ? result->core.text() : result->causes.front().reason;
}

/// No plan under these settings splits it; other settings may.
bool isImpossibleHere(const ReplicationReason& replication) {
  const auto* setting = std::get_if<NotAskedFor>(&replication);
  return std::holds_alternative<Cannot>(replication) || (setting && !setting->changes.empty());
}

std::string nameOf(const Graph& graph, NodeId part) {
  if (graph::layerShape(graph, part)) return solve::ticked(graph::layerName(graph, part));
  const std::string& path = graph.scope(graph.node(part).scope).path;
  return path.empty() ? "attention outside of modules" : fmt::format("attention in {}", solve::ticked(path));
}

/// The verdict on a plan that splits nothing.
WorldSizeVerdict whenNothingSplits(const std::vector<ReplicationReason>& parts) {
  const auto has = [&](auto is) { return std::any_of(parts.begin(), parts.end(), is); };
  if (has([](const ReplicationReason& s) { return std::holds_alternative<DoesNotPay>(s); }))
    return WorldSizeVerdict::DoesNotPay;
  const bool isLeftOut = has([](const ReplicationReason& s) { return std::holds_alternative<NotAskedFor>(s); });
  return isLeftOut ? WorldSizeVerdict::NotAskedFor : WorldSizeVerdict::Nothing;
}

/// True if this reason explains the verdict. For a plan that works: why a part is replicated.
bool isReasonFor(WorldSizeVerdict verdict, const ReplicationReason& replication) {
  switch (verdict) {
    case WorldSizeVerdict::Works:
    case WorldSizeVerdict::DoesNotPay: return std::holds_alternative<DoesNotPay>(replication);
    case WorldSizeVerdict::Partly: return isImpossibleHere(replication);
    case WorldSizeVerdict::NotAskedFor: return std::holds_alternative<NotAskedFor>(replication);
    default: return std::holds_alternative<Cannot>(replication);
  }
}

/// "52 heads do not divide by 8 ranks"; empty if they divide, or if the candidate set lets ranks share KV heads.
std::string indivisibleHeads(const solve::Problem& problem, const std::vector<NodeId>& parts) {
  for (NodeId part : parts) {
    const auto heads = graph::headsOf(*problem.graph, part);
    if (!heads) continue;
    if (std::string refusal = headsText(*heads, problem.context.worldSize);
        !refusal.empty() && !sharesKvHeads(*heads, problem.context))
      return refusal;
  }
  return {};
}

/// Leaves out a reason that `heads` has already.
std::string clauseOf(ReplicationReason replication, const std::string& heads) {
  if (auto* cannot = std::get_if<Cannot>(&replication); cannot && cannot->why == heads) return cannotText(*cannot);
  if (auto* setting = std::get_if<NotAskedFor>(&replication); setting && setting->why == heads) setting->why.clear();
  return toText(replication);
}

/// Prefers attention. If it is replicated, layers around it may count as split but save little, because their columns
/// are gathered.
std::string firstReason(const Graph& graph, const Tried& tried, const std::vector<NodeId>& parts) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!isReasonFor(tried.size.verdict, tried.mainParts[i])) continue;
    const bool isAttention = graph::headsOf(graph, parts[i]).has_value();
    if (!first || isAttention) first = i;
    if (isAttention) break;
  }
  return first ? fmt::format("{} {}", nameOf(graph, parts[*first]), clauseOf(tried.mainParts[*first], tried.size.heads))
               : std::string();
}

/// The step time of one rank, if the model fits one rank and no plan on more ranks is faster.
std::optional<Femtoseconds> asFastAlone(const solve::Problem& problem, const solve::SolveResult& result) {
  if (!result.optimum) return std::nullopt;
  const solve::PlanCost alone = costOfReplicated(problem);
  const bool isAsFast =
      alone.femtoseconds() <= result.optimum->fastest().femtoseconds() && alone.bytes() <= problem.cost.budgetBytes();
  return isAsFast ? std::optional(alone.femtoseconds()) : std::nullopt;
}

void judge(const solve::Problem& problem, const solve::SolveResult& result, const std::vector<NodeId>& parts,
           Tried& tried) {
  WorldSize& size = tried.size;
  if (parts.empty()) {
    size.verdict = WorldSizeVerdict::Nothing;
    size.why = "the model has no layer that Cleave splits";
    return;
  }
  const auto has = [&](auto is) { return std::any_of(tried.mainParts.begin(), tried.mainParts.end(), is); };
  const bool splitsNothing =
      !has([](const ReplicationReason& replication) { return std::holds_alternative<Split>(replication); });
  if (splitsNothing) {
    size.verdict = whenNothingSplits(tried.mainParts);
  } else if (const auto alone = asFastAlone(problem, result)) {
    size.verdict = WorldSizeVerdict::DoesNotPay;
    size.why = fmt::format("no plan is faster than one rank ({} per step); splitting only saves memory",
                           solve::timeText(*alone));
    return;
  } else if (has(isImpossibleHere)) {
    size.verdict = WorldSizeVerdict::Partly;
  }
  size.why = firstReason(*problem.graph, tried, parts);
}

/// For a missing plan: the weights that every plan replicates, if they are the reason for its size.
std::string replicatedText(const Preflight& before, std::int64_t overBytes) {
  if (before.replicatedBytes < overBytes / kLeastShareNamed) return {};
  const auto largest =
      std::max_element(before.replicated.begin(), before.replicated.end(),
                       [](const ReplicatedWeights& a, const ReplicatedWeights& b) { return a.bytes < b.bytes; });
  if (largest == before.replicated.end() || largest->bytes == 0) return {};
  const std::string most = before.replicated.size() == 1 ? "" : fmt::format(", {} of them", bytesText(largest->bytes));
  return fmt::format("{} of weights are replicated{} `{}` ({}). ", bytesText(before.replicatedBytes),
                     most.empty() ? ":" : most, largest->pattern, largest->why);
}

/// Sizes that do not divide are the reason only if they replicate a large part of the weights.
void explainFailure(const solve::Problem& problem, WorldSize& size) {
  const bool isOverBudget = size.verdict == WorldSizeVerdict::OverBudget;
  const std::string whole = isOverBudget ? replicatedText(preflight(problem), size.overBytes) : std::string();
  if (whole.empty()) size.heads.clear();
  size.why = whole + size.why;
}

void judgeParts(const solve::Problem& problem, const solve::SolveResult& result, solve::Engine engine,
                const std::vector<NodeId>& parts, Tried& tried, const Progress& progress) {
  ReplicationSearch search(problem, *result.solution, engine, result.optimum.get(), progress);
  for (NodeId part : parts) {
    const bool isLayer = graph::layerShape(*problem.graph, part).has_value();
    tried.mainParts.push_back(isLayer ? search.weight(part) : search.work(part));
  }
  judge(problem, result, parts, tried);
}

/// `reference` and `learning` return plans of any size.
void setOverBudget(solve::Engine engine, WorldSize& size) {
  size.verdict = WorldSizeVerdict::OverBudget;
  size.why = fmt::format("the engine {} ignores the budget; optimal respects it", solve::toText(engine));
}

/// nullopt if cancelled.
std::optional<WorldSize> tryOn(solve::Problem problem, int ranks, solve::Engine engine,
                               const std::vector<NodeId>& parts, const Progress& progress) {
  Tried tried;
  tried.size.ranks = ranks;
  tried.size.layers = solve::countLayers(*problem.graph, nullptr, ranks);
  problem.context.worldSize = ranks;
  tried.size.heads = indivisibleHeads(problem, parts);
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(problem, engine, *sink, progress);
  if (progress.cancelled() || (result && result->outcome == solve::Outcome::Stopped)) return std::nullopt;
  if (!result || !result->solution) {
    setFailure(problem, result, tried.size);
    explainFailure(problem, tried.size);
    return tried.size;
  }
  setFigures(problem, *result, tried.size);
  if (!tried.size.fitsBudget()) {
    setOverBudget(engine, tried.size);
  } else if (ranks > 1) {
    judgeParts(problem, *result, engine, parts, tried, progress);
    if (progress.cancelled()) return std::nullopt;
  }
  return tried.size;
}

std::string splitText(const WorldSize& size) {
  return fmt::format("{} of {}, {} of the FLOPs and {} of the weight bytes are split", size.layers.split,
                     counted(static_cast<std::int64_t>(size.layers.layers), "layer"), percentText(size.flopsShare),
                     percentText(size.weightShare));
}

}  // namespace

std::string_view toText(WorldSizeVerdict verdict) {
  switch (verdict) {
    case WorldSizeVerdict::Works: return "works";
    case WorldSizeVerdict::Partly: return "partly";
    case WorldSizeVerdict::Nothing: return "nothing splits";
    case WorldSizeVerdict::DoesNotPay: return "does not pay";
    case WorldSizeVerdict::NotAskedFor: return "not asked for";
    case WorldSizeVerdict::NoSolution: return "no solution";
    case WorldSizeVerdict::OverBudget: return "over the budget";
  }
  return "";
}

std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks,
                                  const Progress& progress) {
  const std::vector<NodeId> parts = mainParts(*problem.graph);
  std::vector<WorldSize> sizes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    progress.report("world sizes", static_cast<std::int64_t>(i), static_cast<std::int64_t>(ranks.size()));
    auto size = tryOn(problem, ranks[i], engine, parts, progress);
    if (!size) break;
    sizes.push_back(*std::move(size));
  }
  return sizes;
}

std::string reasonText(const WorldSize& size) {
  if (size.heads.empty() || size.why.empty()) return size.heads + size.why;
  return fmt::format("{}; {}", size.heads, solve::asClause(size.why));
}
std::string overBudgetText(const WorldSize& size) {
  return size.fitsBudget() ? std::string() : "over by " + bytesText(size.overBytes);
}

std::string toText(const WorldSize& size) {
  const std::string reason = reasonText(size);
  const std::string because = reason.empty() ? "" : ": " + solve::asClause(reason);
  switch (size.verdict) {
    case WorldSizeVerdict::Works:
      return size.ranks == 1 ? "works, there is nothing to split"
                             : fmt::format("works: {}{}", splitText(size), reason.empty() ? "" : "; " + reason);
    case WorldSizeVerdict::Partly: return fmt::format("works in part{}; {}", because, splitText(size));
    case WorldSizeVerdict::Nothing: return "nothing is split" + because;
    case WorldSizeVerdict::DoesNotPay:
      return size.layers.split > 0 ? fmt::format("does not pay{}; {}", because, splitText(size))
                                   : "nothing is split" + because;
    case WorldSizeVerdict::NotAskedFor: return "nothing is split" + because;
    case WorldSizeVerdict::NoSolution: return "no solution" + because;
    case WorldSizeVerdict::OverBudget:
      if (size.hasPlan) return fmt::format("over the budget{}", because);
      return fmt::format("{}: {}; the smallest plan found needs {} per rank",
                         size.isProved ? "no plan fits" : "the search found no plan that fits", overBudgetText(size),
                         bytesText(size.rankBytes));
  }
  return {};
}

}  // namespace cleave::plan
