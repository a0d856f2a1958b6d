#include "plan/world_sizes.h"

#include "base/quantities.h"
#include "graph/attention.h"
#include "graph/operators.h"
#include "solve/wording.h"

#include <algorithm>

namespace cleave::plan {
namespace {

using graph::Graph;
using graph::NodeId;

/// One number of ranks, solved.
struct Tried {
  WorldSize size;
  std::vector<Standing> mainParts;  ///< in the order of `mainParts()`; where there is a plan
};

/// What decides whether a number of ranks works: layers with weights, and attention. The rest is small beside them.
std::vector<NodeId> mainParts(const Graph& graph) {
  std::vector<NodeId> parts;
  for (NodeId n : idRange<NodeId>(graph.nodes.size())) {
    const auto layer = graph::layerShape(graph, n);
    if ((layer && layer->weight.isValid()) || graph::headsOf(graph, n)) parts.push_back(n);
  }
  return parts;
}

void takeFigures(const solve::Problem& problem, const solve::SolveResult& result, WorldSize& size) {
  const Shares shares = sharesOf(problem, *result.solution, nullptr);
  const solve::PlanCost cost = result.optimum ? result.optimum->cost() : solve::costOf(problem, *result.solution);
  size.layers = shares.layers;
  size.flopsShare = shares.flopsShare();
  size.weightShare = shares.weightShare();
  size.replicatedFs = shares.replicatedFs;
  size.rankBytes = cost.bytes();
  size.femtoseconds = cost.femtoseconds();
  size.fitsBudget = cost.bytes() <= problem.cost.budgetBytes();
}

void takeFailure(const Result<solve::SolveResult>& result, WorldSize& size) {
  size.verdict = WorldSizeVerdict::NoSolution;
  if (!result) return void(size.why = result.error().message);
  const auto& core = result->core.constraints;
  const bool isBudget = std::any_of(core.begin(), core.end(), [](const solve::Constraint& c) { return c.kind == solve::ConstraintKind::Budget; });
  if (isBudget) size.verdict = WorldSizeVerdict::OverBudget;
  size.fitsBudget = !isBudget;
  size.why = isBudget || result->causes.empty() ? result->core.text() : result->causes.front().reason;
}

/// nullopt: cancelled.
std::optional<Tried> tryOn(solve::Problem problem, int ranks, solve::Engine engine, const std::vector<NodeId>& parts, const Progress& progress) {
  Tried tried;
  tried.size.ranks = ranks;
  tried.size.layers = solve::countLayers(*problem.graph, nullptr, ranks);
  problem.context.worldSize = ranks;
  const auto sink = solve::makeCountingSink();
  const auto result = solve::solve(problem, engine, *sink, progress);
  if (progress.cancelled() || (result && result->outcome == solve::Outcome::Stopped)) return std::nullopt;
  if (!result || !result->solution) {
    takeFailure(result, tried.size);
    return tried;
  }
  takeFigures(problem, *result, tried.size);
  if (ranks == 1) return tried;
  Standings standings(problem, *result->solution, engine, result->optimum.get());
  for (NodeId part : parts) {
    const bool isLayer = graph::layerShape(*problem.graph, part).has_value();
    tried.mainParts.push_back(isLayer ? standings.weight(part) : standings.work(part));
  }
  return tried;
}

bool isWhole(const Standing& standing) { return !std::holds_alternative<Split>(standing); }

/// No plan under these settings splits it; other settings may.
bool isImpossibleHere(const Standing& standing) {
  const auto* setting = std::get_if<NotAskedFor>(&standing);
  return std::holds_alternative<Cannot>(standing) || (setting && !setting->changes.empty());
}

std::string nameOf(const Graph& graph, NodeId part) {
  if (graph::layerShape(graph, part)) return solve::ticked(graph::layerName(graph, part));
  return fmt::format("attention in {}", solve::ticked(graph.scope(graph.node(part).scope).path));
}

/// Nothing is split: the standing that says why for the whole plan.
WorldSizeVerdict whenNothingSplits(const std::vector<Standing>& parts) {
  const auto has = [&](auto is) { return std::any_of(parts.begin(), parts.end(), is); };
  if (has([](const Standing& s) { return std::holds_alternative<DoesNotPay>(s); })) return WorldSizeVerdict::DoesNotPay;
  if (parts.empty() || has([](const Standing& s) { return std::holds_alternative<Cannot>(s); })) return WorldSizeVerdict::Nothing;
  return WorldSizeVerdict::NotAskedFor;
}

/// What a verdict on a plan that splits nothing rests on.
bool isReasonFor(WorldSizeVerdict verdict, const Standing& standing) {
  switch (verdict) {
    case WorldSizeVerdict::DoesNotPay: return std::holds_alternative<DoesNotPay>(standing);
    case WorldSizeVerdict::NotAskedFor: return std::holds_alternative<NotAskedFor>(standing);
    default: return std::holds_alternative<Cannot>(standing);
  }
}

/// Attention first: a layer whose columns are gathered around it counts as split and saves little.
std::optional<std::size_t> firstOf(const Graph& graph, const std::vector<NodeId>& parts, const std::vector<bool>& isMeant) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!isMeant[i]) continue;
    if (graph::headsOf(graph, parts[i])) return i;
    if (!first) first = i;
  }
  return first;
}

/// `splitsSomewhere`: by main part, whether any number of ranks can split it.
void judge(const Graph& graph, Tried& tried, const std::vector<NodeId>& parts, const std::vector<bool>& splitsSomewhere) {
  WorldSize& size = tried.size;
  if (size.ranks == 1 || !hasPlan(size.verdict)) return;
  const bool splitsNothing = std::all_of(tried.mainParts.begin(), tried.mainParts.end(), isWhole);
  if (splitsNothing) size.verdict = whenNothingSplits(tried.mainParts);
  std::vector<bool> isReason(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Standing& standing = tried.mainParts[i];
    isReason[i] = splitsNothing ? isReasonFor(size.verdict, standing) : isImpossibleHere(standing) && splitsSomewhere[i];
  }
  const auto told = firstOf(graph, parts, isReason);
  if (told && !splitsNothing) size.verdict = WorldSizeVerdict::Partly;
  if (told) size.why = fmt::format("{} {}", nameOf(graph, parts[*told]), toText(tried.mainParts[*told]));
  if (parts.empty()) size.why = "the model has no layer with a weight";
}

std::string splitText(const WorldSize& size) {
  return fmt::format("{} of {} layers, {} of the FLOPs and {} of the weight bytes are split", size.layers.split, size.layers.layers, percentText(size.flopsShare),
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

bool hasPlan(WorldSizeVerdict verdict) { return verdict != WorldSizeVerdict::NoSolution && verdict != WorldSizeVerdict::OverBudget; }

std::vector<WorldSize> worldSizes(const solve::Problem& problem, solve::Engine engine, std::span<const int> ranks, const Progress& progress) {
  const std::vector<NodeId> parts = mainParts(*problem.graph);
  std::vector<Tried> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    progress.report("world sizes", static_cast<std::int64_t>(i), static_cast<std::int64_t>(ranks.size()));
    auto tried = tryOn(problem, ranks[i], engine, parts, progress);
    if (!tried) break;
    all.push_back(*std::move(tried));
  }
  std::vector<bool> splitsSomewhere(parts.size());
  for (const Tried& tried : all) {
    for (std::size_t i = 0; i < tried.mainParts.size(); ++i) splitsSomewhere[i] = splitsSomewhere[i] || !isImpossibleHere(tried.mainParts[i]);
  }
  std::vector<WorldSize> sizes;
  for (Tried& tried : all) {
    judge(*problem.graph, tried, parts, splitsSomewhere);
    sizes.push_back(std::move(tried.size));
  }
  return sizes;
}

std::string toText(const WorldSize& size) {
  const std::string because = size.why.empty() ? "" : ": " + size.why;
  switch (size.verdict) {
    case WorldSizeVerdict::Works:
      return size.ranks == 1 ? "works, there is nothing to split" : "works: " + splitText(size);
    case WorldSizeVerdict::Partly: return fmt::format("works in part{}; {}", because, splitText(size));
    case WorldSizeVerdict::Nothing: return "nothing can be split" + because;
    case WorldSizeVerdict::DoesNotPay: return "nothing is split" + because;
    case WorldSizeVerdict::NotAskedFor: return "nothing is split" + because;
    case WorldSizeVerdict::NoSolution: return "there is no solution" + because;
    case WorldSizeVerdict::OverBudget: return "no plan fits" + because;
  }
  return {};
}

}  // namespace cleave::plan
