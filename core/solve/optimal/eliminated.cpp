#include "solve/optimal/eliminated.h"

#include "solve/optimal/budget.h"
#include "solve/optimal/paths_in_order.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cleave::solve::optimal {
namespace {

constexpr std::uint64_t kMostPlansChecked = 1000;
constexpr auto kLongestSearch = std::chrono::seconds(1);
constexpr int kMostRanges = 24;

void place(const Graph& graph, NodeId node, std::span<const ValueId> writes, const Choice& choice, Solution& solution) {
  auto written = writes.begin();
  forEachPlacement(choice, [&](const Placement& placement) {
    if (written->isValid()) solution.placements[written->index()] = placement;
    ++written;
  });
  solution.strategies[node.index()] = choice.strategy;
  for (std::size_t i = 0; i < choice.computedAs.size(); ++i) {
    if (choice.computedAs[i] != choice.results[i]) solution.computedAs.emplace(graph.node(node).results[i], choice.computedAs[i]);
  }
}

}  // namespace

Eliminated::Eliminated(std::shared_ptr<const Context> context, Elimination elimination)
    : m_context(std::move(context)),
      m_elimination(std::move(elimination)),
      m_placeOf(m_context->problem.graph->nodes.size(), 0) {
  const auto& order = m_elimination.layout.order;
  for (std::uint32_t i = 0; i < order.size(); ++i) m_placeOf[order[i].index()] = i + 1;
  m_stats.steps = order.size() + m_elimination.layout.fixed.size();
  m_stats.foldedSteps = m_elimination.foldedSteps;
  for (const auto& level : m_elimination.levels) {
    m_stats.states += level->entry->count;
    m_stats.transitions += level->transitions.size();
    m_stats.widest = std::max<std::uint64_t>(m_stats.widest, level->exit->count);
    m_stats.memoryBytes += level->memoryBytes() + level->exit->tokens.size() * sizeof(std::uint32_t);
  }
  m_stats.memoryBytes += m_elimination.places() * (sizeof(std::uint32_t) + sizeof(std::size_t)) +
                         m_elimination.offsets.back() * sizeof(std::int64_t);
}

std::optional<std::size_t> Eliminated::placeOf(NodeId node) const {
  const std::uint32_t place = m_placeOf[node.index()];
  return place == 0 ? std::nullopt : std::optional<std::size_t>(place - 1);
}

const Candidate& Eliminated::takenAt(const Path& path, std::size_t place) const {
  const Level& level = m_elimination.level(place);
  const auto& answer = *level.answers[fromOf(level, path[place])];
  return answer.open[level.transitions[path[place]].ordinal];
}

template <class Visit>
void Eliminated::forEachTaken(const Path& path, Visit visit) const {
  std::uint32_t state = 0;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const Level& level = m_elimination.level(at);
    const Transition& transition = level.transitions[path[at]];
    visit(at, transition, level.answers[state]->open[transition.ordinal]);
    state = transition.to;
  }
}

Solution Eliminated::solutionOf(const Path& path) const {
  const Graph& graph = *m_context->problem.graph;
  Solution solution;
  solution.placements.resize(graph.values.size());
  solution.strategies.resize(graph.nodes.size());
  forEachTaken(path, [&](std::size_t at, const Transition&, const Candidate& candidate) {
    const NodeId node = m_elimination.layout.order[at];
    place(graph, node, m_context->variables.writes(node), candidate.choice, solution);
  });
  return solution;
}

PlanCost Eliminated::priceOf(const Path& path, const Solution& solution) const {
  PlanCost cost;
  for (const auto& fixed : m_elimination.layout.fixed) cost.sum += fixed.answer->open.front().cost;
  forEachTaken(path, [&](std::size_t, const Transition& transition, const Candidate& candidate) {
    cost.sum += candidate.cost;
    cost.sum += StepCost{.trafficFs = transition.femtoseconds - candidate.femtoseconds,
                         .trafficBytes = transition.sharedBytes,
                         .summedGradients = transition.sharedGradients};
  });
  cost.fixedBytes = m_context->model.fixedBytes();
  cost.transientPeak = m_context->model.transientPeak(solution, cost.sum);
  return cost;
}

const Chain* Eliminated::chain(const Progress& progress) const {
  const std::lock_guard lock(m_chainMutex);
  if (!m_chain) m_chain = Chain::of(m_elimination, Chain::kAnyPeak, progress);
  return m_chain ? &*m_chain : nullptr;
}

const Found& Eliminated::find(const Progress& progress) {
  m_found = cheapest({}, progress);
  if (m_found.outcome == Found::Outcome::Plan || m_found.outcome == Found::Outcome::OverBudget) {
    m_solution = m_found.solution ? *std::exchange(m_found.solution, std::nullopt) : solutionOf(m_found.path);
  }
  m_stats.plansChecked = m_found.plansChecked;
  return m_found;
}

/// Plans through states that were dropped may be cheaper.
void Eliminated::countDropped(Found& found) const {
  if (!m_elimination.droppedFs) return;
  const std::int64_t bound = *m_elimination.droppedFs + m_elimination.fixedFs;
  if (found.outcome == Found::Outcome::Plan && bound >= found.cost.femtoseconds()) return;
  found.isProved = false;
  found.lowerBoundFs = std::min(found.lowerBoundFs, bound);
}

Found Eliminated::cheapest(const Restriction& restriction, const Progress& progress) const {
  constexpr Weights<std::int64_t> kTime{1, 0};
  Found found;
  const auto toGo = backward(m_elimination, kTime, restriction, progress);
  if (toGo.empty()) return found;
  auto path = pathAlong(m_elimination, kTime, restriction, toGo);
  if (!path) {
    found.outcome = Found::Outcome::NoPlan;
    countDropped(found);
    return found;
  }
  found.path = std::move(*path);
  found.solution = solutionOf(found.path);
  found.cost = priceOf(found.path, *found.solution);
  found.lowerBoundFs = found.cost.femtoseconds();
  found.plansChecked = 1;
  if (found.cost.bytes() <= budget()) {
    found.outcome = Found::Outcome::Plan;
    countDropped(found);
    return found;
  }
  const std::uint64_t checked = found.plansChecked;
  found = withinBudget(restriction, progress);
  found.plansChecked += checked;
  countDropped(found);
  return found;
}

/// The fastest plan does not fit, so the budget binds. It counts additive bytes, which a search on the chain bounds exactly,
/// and the transient peak, which is known only of a whole plan. So plans are told apart by their peak: of those whose peak
/// is in [least, below), none has more than budget − least additive bytes, nor a step that alone needs `below`. The
/// cheapest under these two conditions settles the range when it fits; else its own peak divides the range.
Found Eliminated::withinBudget(const Restriction& restriction, const Progress& progress) const {
  struct Range {
    std::int64_t least = 0, below = Chain::kAnyPeak;
  };
  const Chain* whole = chain(progress);
  if (!whole) return {};
  Found best;
  best.outcome = Found::Outcome::OverBudget;
  std::int64_t openBound = kUnreachable<std::int64_t>;  // no plan of a range that could not be settled is faster
  const auto keep = [&](Path path, const PlanCost& cost) {
    if (best.outcome == Found::Outcome::Plan && cost.femtoseconds() >= best.cost.femtoseconds()) return;
    best.outcome = Found::Outcome::Plan;
    best.path = std::move(path);
    best.cost = cost;
  };
  std::vector<Range> ranges{{}};
  for (int looked = 0; !ranges.empty(); ++looked) {
    const Range range = ranges.back();
    ranges.pop_back();
    auto limited = range.below == Chain::kAnyPeak ? *whole : Chain::of(m_elimination, range.below, progress);
    if (!limited) return {};
    if (restriction.place != Restriction::kNowhere) limited = limited->restricted(m_elimination, restriction);
    Bounded within = cheapestWithin(m_elimination, *limited, budget() - range.least, progress);
    if (within.outcome == Bounded::Outcome::Stopped) return {};
    const bool isSmallest = within.outcome == Bounded::Outcome::TooMuch;
    if (isSmallest && within.path.empty()) continue;
    const bool isSlower = best.outcome == Found::Outcome::Plan && within.lowerBoundFs >= best.cost.femtoseconds();
    if (!isSmallest && isSlower) continue;
    const PlanCost cost = priceOf(within.path);
    ++best.plansChecked;
    if (isSmallest) {
      const bool isLeaner = best.path.empty() || cost.bytes() < best.cost.bytes();
      if (best.outcome == Found::Outcome::OverBudget && isLeaner) {
        best.path = std::move(within.path);
        best.cost = cost;
      }
      continue;
    }
    if (cost.bytes() <= budget()) {
      if (!within.isProved) openBound = std::min(openBound, within.lowerBoundFs);
      keep(std::move(within.path), cost);
    } else if (cost.transientPeak >= range.below || looked >= kMostRanges) {
      openBound = std::min(openBound, within.lowerBoundFs);
    } else {
      ranges.push_back({range.least, cost.transientPeak});
      ranges.push_back({cost.transientPeak, range.below});
    }
  }
  const bool hasPlan = best.outcome == Found::Outcome::Plan;
  best.lowerBoundFs = hasPlan ? std::min(best.cost.femtoseconds(), openBound) : openBound;
  best.isProved = openBound == kUnreachable<std::int64_t> || (hasPlan && openBound >= best.cost.femtoseconds());
  if (!best.isProved && !lookThrough(restriction, best, progress)) return {};
  return best;
}

/// Looks for a plan faster than `found` among all, by rising time, for a while. False when cancelled.
bool Eliminated::lookThrough(const Restriction& restriction, Found& found, const Progress& progress) const {
  const auto began = std::chrono::steady_clock::now();
  const bool hasPlan = found.outcome == Found::Outcome::Plan;
  PathsInOrder paths(m_elimination, budget(), hasPlan ? found.cost.femtoseconds() : kUnreachable<std::int64_t>, restriction,
                     progress);
  while (found.plansChecked < kMostPlansChecked && std::chrono::steady_clock::now() - began < kLongestSearch) {
    const auto state = paths.next();
    if (state == PathsInOrder::State::Stopped) return false;
    if (state == PathsInOrder::State::OutOfRoom) break;
    if (state == PathsInOrder::State::Exhausted) {
      found.isProved = true;
      if (hasPlan) found.lowerBoundFs = found.cost.femtoseconds();
      return true;
    }
    ++found.plansChecked;
    const PlanCost next = priceOf(paths.path());
    if (next.bytes() <= budget()) {
      found.outcome = Found::Outcome::Plan;
      found.path = paths.path();
      found.cost = next;
      found.isProved = true;
      found.lowerBoundFs = next.femtoseconds();
      return true;
    }
    if (found.path.empty() || (!hasPlan && next.bytes() < found.cost.bytes())) {
      found.path = paths.path();
      found.cost = next;
    }
  }
  found.lowerBoundFs = std::max(found.lowerBoundFs, paths.lowerBoundFs());
  return true;
}

}  // namespace cleave::solve::optimal
