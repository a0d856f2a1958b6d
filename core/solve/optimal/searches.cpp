#include "solve/optimal/budget.h"
#include "solve/optimal/eliminated.h"
#include "solve/optimal/first_in_order.h"
#include "solve/optimal/paths_in_order.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

/// If bounds do not settle a search, plans are checked one by one: at most Limits::plans, with this number of
/// transitions each. The limits are counts, so that an answer does not depend on the load of the machine.
constexpr std::uint64_t kTransitionsPerPlan = 10'000;
constexpr int kMostRanges = 24;

std::uint64_t mostWork(const Limits& limits) { return limits.plans * kTransitionsPerPlan; }

}  // namespace

/// A plan through a dropped state may be cheaper.
void Eliminated::countDropped(Found& found) const {
  if (!m_elimination.droppedFs) return;
  const Wide bound = *m_elimination.droppedFs + m_elimination.fixedFs;
  if (found.ending == Found::Ending::Plan && bound >= found.cost.femtoseconds().count()) return;
  found.isProved = false;
  found.lowerBoundFs = std::min(found.lowerBoundFs, bound);
}

Found Eliminated::fastestWithin(const Restriction& restriction, Limits limits, const Progress& progress) const {
  Found found;
  const auto toGo = backward(m_elimination, kTime, restriction, progress);
  if (toGo.empty()) return found;
  auto path = pathAlong(m_elimination, kTime, restriction, toGo);
  if (!path) {
    found.ending = Found::Ending::NoPlan;
    countDropped(found);
    return found;
  }
  found.path = std::move(*path);
  found.solution = solutionOf(found.path);
  found.cost = priceOf(found.path, *found.solution);
  found.lowerBoundFs = found.cost.femtoseconds().count();
  found.plansChecked = 1;
  if (limits.allow(found.cost)) {
    found.ending = Found::Ending::Plan;
    countDropped(found);
    return found;
  }
  const std::uint64_t checked = found.plansChecked;
  found = fastestOnChain(restriction, limits, progress);
  if (limits.isFirst && found.ending == Found::Ending::Plan) chooseFirst(restriction, limits, found, progress);
  found.plansChecked += checked;
  countDropped(found);
  return found;
}

/// If limits bind, replaces the plan by the first equally fast plan in candidate order.
void Eliminated::chooseFirst(const Restriction& restriction, const Limits& limits, Found& found,
                             const Progress& progress) const {
  const std::int64_t mostBytes = std::min(limits.total - leastPeak(m_elimination), limits.additive);
  const PathCost most{found.cost.femtoseconds().count(), mostBytes};
  FirstInOrder paths(m_elimination, most, restriction, progress);
  for (std::uint64_t i = 0; i < limits.plans; ++i) {
    const Path* path = paths.next();
    if (!path || *path == found.path) return;
    const PlanCost cost = priceOf(*path);
    if (!limits.allow(cost) || cost.femtoseconds() > found.cost.femtoseconds()) continue;
    found.path = *path;
    found.solution.reset();
    found.cost = cost;
    return;
  }
}

std::optional<Chain> Eliminated::chainOf(const Restriction& restriction, std::int64_t peakLimit,
                                         const Progress& progress) const {
  // A restriction of one place keeps the blocks that all searches share.
  if (restriction.places() > 1) return Chain::unfolded(m_elimination, peakLimit, restriction);
  const Chain* whole = chain(progress);
  if (!whole) return std::nullopt;
  auto limited = peakLimit == Chain::kAnyPeak ? *whole : Chain::of(m_elimination, peakLimit, progress);
  if (limited && restriction.places() > 0) limited = limited->restricted(m_elimination, restriction);
  return limited;
}

/// The fastest plan does not fit, so the limits bind. They limit the sum of additive bytes and the transient peak. A
/// search on the chain bounds additive bytes exactly, but the peak is known only for a complete plan. So plans are
/// grouped by their peak. A plan with a peak in [least, below) has at most limit − least additive bytes, and each of
/// its steps alone needs less than `below`. If the fastest plan under these two conditions fits, the range is settled.
/// If not, its own peak divides the range.
Found Eliminated::fastestOnChain(const Restriction& restriction, Limits limits, const Progress& progress) const {
  struct Range {
    std::int64_t least = 0, below = Chain::kAnyPeak;
  };
  Found best;
  best.ending = Found::Ending::OverBudget;
  Wide openBound = kUnreachable;  // lower bound of plans in ranges that could not be settled
  const auto keep = [&](Path path, const PlanCost& cost) {
    if (best.ending == Found::Ending::Plan && cost.femtoseconds() >= best.cost.femtoseconds()) return;
    best.ending = Found::Ending::Plan;
    best.path = std::move(path);
    best.cost = cost;
  };
  std::vector<Range> ranges{{}};
  for (int looked = 0; !ranges.empty(); ++looked) {
    const Range range = ranges.back();
    ranges.pop_back();
    const auto limited = chainOf(restriction, range.below, progress);
    if (!limited) return {};
    Bounded within = optimal::fastestWithin(m_elimination, *limited,
                                            std::min(limits.additive, limits.total - range.least), progress);
    if (within.ending == Bounded::Ending::Stopped) return {};
    const bool isSmallest = within.ending == Bounded::Ending::OverLimit;
    if (isSmallest && within.path.empty()) continue;
    const bool isSlower = best.ending == Found::Ending::Plan && within.lowerBound >= best.cost.femtoseconds().count();
    if (!isSmallest && isSlower) continue;
    const PlanCost cost = priceOf(within.path);
    ++best.plansChecked;
    if (isSmallest && limits.allow(cost)) {  // its peak is below the range, and all plans in the range need more
      keep(std::move(within.path), cost);
      continue;
    }
    if (isSmallest) {
      const bool isSmaller = best.path.empty() || cost.bytes() < best.cost.bytes();
      if (best.ending == Found::Ending::OverBudget && isSmaller) {
        best.path = std::move(within.path);
        best.cost = cost;
      }
      continue;
    }
    if (limits.allow(cost)) {
      if (!within.isProved) openBound = std::min(openBound, within.lowerBound);
      keep(std::move(within.path), cost);
    } else if (cost.transientPeak >= range.below || looked >= kMostRanges) {
      openBound = std::min(openBound, within.lowerBound);
    } else {
      ranges.push_back({range.least, cost.transientPeak});
      ranges.push_back({cost.transientPeak, range.below});
    }
  }
  const bool hasPlan = best.ending == Found::Ending::Plan;
  best.lowerBoundFs = hasPlan ? std::min(best.cost.femtoseconds().count(), openBound) : openBound;
  best.isProved = openBound == kUnreachable || (hasPlan && openBound >= best.cost.femtoseconds().count());
  if (!best.isProved && !checkInOrder(restriction, limits, best, progress)) return {};
  return best;
}

/// Checks plans by rising time until one is faster than `found` or a limit is reached. False if cancelled.
bool Eliminated::checkInOrder(const Restriction& restriction, Limits limits, Found& found,
                              const Progress& progress) const {
  const bool hasPlan = found.ending == Found::Ending::Plan;
  const Wide cut = hasPlan ? found.cost.femtoseconds().count() : kUnreachable;
  PathsInOrder paths(m_elimination, std::min(limits.total, limits.additive), cut, restriction, progress);
  while (found.plansChecked < limits.plans) {
    const auto state = paths.next(mostWork(limits));
    if (state == PathsInOrder::State::Stopped) return false;
    if (state == PathsInOrder::State::OutOfRoom) break;
    if (state == PathsInOrder::State::Exhausted) {
      found.isProved = true;
      if (hasPlan) found.lowerBoundFs = found.cost.femtoseconds().count();
      return true;
    }
    ++found.plansChecked;
    const PlanCost next = priceOf(paths.path());
    if (limits.allow(next)) {
      found.ending = Found::Ending::Plan;
      found.path = paths.path();
      found.cost = next;
      found.isProved = true;
      found.lowerBoundFs = next.femtoseconds().count();
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

Found Eliminated::withSlack(const Restriction& restriction, const Limits& within, const Found& fastest,
                            const Progress& progress) const {
  const Femtoseconds limit = m_context->problem.cost.slowest(fastest.cost.femtoseconds());
  if (fastest.ending != Found::Ending::Plan || m_context->problem.cost.slackPercent == 0) return fastest;
  Limits limits = within;
  limits.total = std::min(within.total, fastest.cost.bytes());
  Found smallest = fastest;
  // A plan through a dropped state may need less memory.
  if (m_elimination.droppedFs)
    smallest.isProved = smallest.isProved && *m_elimination.droppedFs + m_elimination.fixedFs > limit.count();
  if (!findSmallerOnChain(restriction, limits, limit.count(), smallest, progress)) return {};
  if (smallest.cost.additiveBytes() == fastest.cost.additiveBytes()) {
    Found same = fastest;
    same.isProved = smallest.isProved;
    same.plansChecked = smallest.plansChecked;
    return same;
  }
  // Among plans with the same additive bytes, the fastest is wanted.
  limits.additive = smallest.cost.additiveBytes();
  Found found = fastestWithin(restriction, limits, progress);
  if (found.ending == Found::Ending::Stopped) return {};
  const bool isFound = found.ending == Found::Ending::Plan && found.cost.femtoseconds() <= smallest.cost.femtoseconds();
  const bool isProved = smallest.isProved && isFound && found.isProved;
  const std::uint64_t checked = smallest.plansChecked + found.plansChecked;
  if (!isFound) found = std::move(smallest);
  found.isProved = isProved;
  found.plansChecked = checked;
  found.lowerBoundFs = fastest.lowerBoundFs;
  return found;
}

/// Finds the plan with the fewest additive bytes among those with a peak below `below`. Every smaller plan has a lower
/// peak, so `below` decreases to the peak of that plan. Single steps give only a lower bound of the peak, so a final
/// search looks for still smaller plans.
bool Eliminated::findSmallest(Found& found, const Progress& progress) const {
  const auto keepSmaller = [&](Path path, const PlanCost& cost) {
    if (cost.bytes() >= found.cost.bytes()) return;
    found.path = std::move(path);
    found.solution.reset();
    found.cost = cost;
  };
  std::int64_t below = Chain::kAnyPeak;
  for (int looked = 0; looked < kMostRanges; ++looked) {
    const auto limited = chainOf({}, below, progress);
    if (!limited) return false;
    Bounded smallest = smallestWithin(m_elimination, *limited, kUnreachable, progress);
    if (smallest.ending == Bounded::Ending::Stopped) return false;
    if (smallest.ending == Bounded::Ending::OverLimit || smallest.lowerBound >= found.cost.bytes()) break;
    const PlanCost cost = priceOf(smallest.path);
    keepSmaller(std::move(smallest.path), cost);
    if (cost.transientPeak >= below) break;
    below = cost.transientPeak;
  }
  Limits less = forOneOfMany({});
  for (int looked = 0; looked < kMostRanges; ++looked) {
    less.total = found.cost.bytes() - 1;
    Found smaller = fastestOnChain({}, less, progress);
    if (smaller.ending == Found::Ending::Stopped) return false;
    if (smaller.ending != Found::Ending::Plan) break;
    keepSmaller(std::move(smaller.path), smaller.cost);
  }
  return true;
}

/// Replaces `found`, a plan within the limits, by one with fewer additive bytes. A plan with `a` additive bytes and a
/// peak above limit − a does not fit. As soon as the fewest bytes are known, plans with such a peak are skipped. False
/// if cancelled.
bool Eliminated::findSmallerOnChain(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                                    const Progress& progress) const {
  std::int64_t below = Chain::kAnyPeak;
  for (int looked = 0; looked < kMostRanges; ++looked) {
    const auto limited = chainOf(restriction, below, progress);
    if (!limited) return false;
    Bounded smallest = smallestWithin(m_elimination, *limited, limitFs, progress);
    if (smallest.ending == Bounded::Ending::Stopped) return false;
    if (smallest.ending == Bounded::Ending::OverLimit || smallest.lowerBound >= found.cost.additiveBytes()) return true;
    ++found.plansChecked;
    const PlanCost cost = priceOf(smallest.path);
    if (limits.allow(cost)) {
      found.path = std::move(smallest.path);
      found.solution.reset();
      found.cost = cost;
      found.isProved = found.isProved && smallest.isProved;
      return true;
    }
    const auto next = static_cast<std::int64_t>(limits.total - smallest.lowerBound + 1);
    if (next >= below) break;
    below = next;
  }
  return findSmallerInOrder(restriction, limits, limitFs, found, progress);
}

/// The same for all plans one by one, up to a limit. False if cancelled.
bool Eliminated::findSmallerInOrder(const Restriction& restriction, Limits limits, Wide limitFs, Found& found,
                                    const Progress& progress) const {
  PathsInOrder paths(m_elimination, found.cost.additiveBytes() - 1, limitFs + 1, restriction, progress);
  while (found.plansChecked < limits.plans) {
    const auto state = paths.next(mostWork(limits));
    if (state == PathsInOrder::State::Stopped) return false;
    if (state == PathsInOrder::State::OutOfRoom) break;
    if (state == PathsInOrder::State::Exhausted) return true;
    ++found.plansChecked;
    const PlanCost next = priceOf(paths.path());
    if (!limits.allow(next) || next.additiveBytes() >= found.cost.additiveBytes()) continue;
    found.path = paths.path();
    found.solution.reset();
    found.cost = next;
  }
  found.isProved = false;
  return true;
}

}  // namespace cleave::solve::optimal
