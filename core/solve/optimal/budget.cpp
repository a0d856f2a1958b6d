#include "solve/optimal/budget.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostLabels = 4'000'000;   // 48 bytes each
constexpr std::size_t kMostFrontLabels = 4'000;  // at one state, and as many at each boundary are kept
constexpr int kMostMultipliers = 64;

using Arcs = std::vector<std::uint32_t>;

/// The arcs to a label of the last set.
Arcs arcsTo(const std::vector<LabelSet>& sets, std::uint32_t at) {
  Arcs arcs(sets.size() - 1);
  for (std::size_t i = arcs.size(); i-- > 0;) {
    const Label& label = sets[i + 1].labels[at];
    arcs[i] = label.arc;
    at = label.parent;
  }
  return arcs;
}

/// The result of a search over places, without fixed steps.
struct BoundedArcs {
  Bounded::Ending ending = Bounded::Ending::Stopped;
  Arcs arcs;
  bool isProved = true;
  Wide lowerBound = 0;
};

/// A search on one chain. Costs and limits do not include fixed steps.
class BudgetSearch {
 public:
  BudgetSearch(const Chain& chain, Wide limit, const Progress& progress)
      : m_chain(chain), m_progress(progress), m_most(mostOf(chain)), m_limit(std::min(limit, m_most.bytes)) {}

  BoundedArcs run() {
    m_time = backward(m_chain, kTime);
    m_bytes = backward(m_chain, kBytes);
    if (m_time.front().front() >= kUnreachable) return {Bounded::Ending::OverLimit, {}, true, 0};
    const Arcs fast = follow(m_time, kTime);
    if (costOf(fast).bytes <= m_limit) return found(fast, costOf(fast).femtoseconds, true);
    const Arcs smallest = follow(m_bytes, kBytes);
    if (costOf(smallest).bytes > m_limit) {
      return {Bounded::Ending::OverLimit, smallest, true, 0};
    }
    m_best = smallest;
    m_bestFs = costOf(smallest).femtoseconds;
    findMultiplier(costOf(fast), costOf(smallest));
    improve(dive());
    if (m_progress.cancelled()) return {};
    if (m_bestFs <= m_lowerBound) return found(m_best, m_bestFs, true);
    return label();
  }

 private:
  static BoundedArcs found(const Arcs& arcs, Wide lowerBound, bool isProved) {
    return {Bounded::Ending::Found, arcs, isProved, lowerBound};
  }

  const Arc& arcAt(std::size_t link, std::uint32_t arc) const { return m_chain.links()[link].relation->arcs[arc]; }

  PathCost costOf(const Arcs& arcs) const {
    PathCost cost;
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      cost.femtoseconds += arcAt(i, arcs[i]).femtoseconds;
      cost.bytes += arcAt(i, arcs[i]).bytes;
    }
    return cost;
  }

  Arcs follow(const std::vector<std::vector<Wide>>& toGo, Weights weights) const {
    Arcs arcs;
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < m_chain.links().size(); ++i) {
      std::uint32_t a = m_chain.links()[i].relation->begins[state];
      while (weights.of(arcAt(i, a).femtoseconds, arcAt(i, a).bytes) + toGo[i + 1][arcAt(i, a).to] != toGo[i][state])
        ++a;
      arcs.push_back(a);
      state = arcAt(i, a).to;
    }
    return arcs;
  }

  void improve(const Arcs& arcs) {
    const PathCost cost = costOf(arcs);
    if (cost.bytes > m_limit || cost.femtoseconds >= m_bestFs) return;
    m_best = arcs;
    m_bestFs = cost.femtoseconds;
  }

  /// Finds the multiplier with the highest bound: the slope of the lower convex hull of all plans at the limit. It is a
  /// ratio of integers, so that bounds are exact.
  void findMultiplier(PathCost over, PathCost within) {
    m_lowerBound = over.femtoseconds;
    m_weights = {1, 0};
    m_weighted = m_time;
    for (int i = 0; i < kMostMultipliers && !m_progress.cancelled(); ++i) {
      const Weights weights = Weights::between(over, within, m_most);
      auto toGo = backward(m_chain, weights);
      const Wide least = toGo.front().front();
      const Arcs arcs = follow(toGo, weights);
      const Wide bound = (least - weights.bytes * m_limit + weights.time - 1) / weights.time;
      if (bound >= m_lowerBound) {
        m_lowerBound = bound;
        m_weights = weights;
        m_weighted = std::move(toGo);
      }
      improve(arcs);
      if (least >= std::min(weights.of(over), weights.of(within))) return;
      (costOf(arcs).bytes <= m_limit ? within : over) = costOf(arcs);
    }
  }

  /// Lower bound of time, times m_weights.time, for all ways from `state` to the end.
  Wide boundOf(std::size_t boundary, std::uint32_t state, Wide fs, Wide bytes) const {
    return m_weights.of(fs, bytes) + m_weighted[boundary][state] - m_weights.bytes * m_limit;
  }

  /// Finds a good plan within the limit: it follows the arc with the lowest bound that leaves enough bytes for the
  /// rest.
  Arcs dive() const {
    Arcs arcs;
    PathCost sum;
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < m_chain.links().size(); ++i) {
      const Relation& relation = *m_chain.links()[i].relation;
      std::optional<std::pair<Wide, std::uint32_t>> best;
      for (std::uint32_t a = relation.begins[state]; a < relation.begins[state + 1]; ++a) {
        const Arc& arc = relation.arcs[a];
        const Wide fs = sum.femtoseconds + arc.femtoseconds, bytes = sum.bytes + arc.bytes;
        if (bytes + m_bytes[i + 1][arc.to] > m_limit) continue;
        const Wide bound = std::max(m_weights.time * (fs + m_time[i + 1][arc.to]), boundOf(i + 1, arc.to, fs, bytes));
        if (!best || bound < best->first) best = {bound, a};
      }
      arcs.push_back(best->second);  // a path within the limit exists from every state reached
      sum.femtoseconds += arcAt(i, best->second).femtoseconds;
      sum.bytes += arcAt(i, best->second).bytes;
      state = arcAt(i, best->second).to;
    }
    return arcs;
  }

  BoundedArcs label() {
    const auto& links = m_chain.links();
    std::vector<LabelSet> sets{startingAt(0, 1)};
    std::size_t labels = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (m_progress.cancelled()) return {};
      sets.push_back(extended(sets.back(), *links[i].relation, [&](std::uint32_t state, Wide fs, Wide bytes) {
        return bytes + m_bytes[i + 1][state] <= m_limit && fs + m_time[i + 1][state] < m_bestFs &&
               boundOf(i + 1, state, fs, bytes) < m_weights.time * m_bestFs;
      }));
      labels += sets.back().labels.size();
      if (labels > kMostLabels) return found(m_best, m_lowerBound, false);
    }
    if (sets.back().labels.empty()) return found(m_best, m_bestFs, true);
    return found(arcsTo(sets, 0), sets.back().labels.front().femtoseconds, true);
  }

  const Chain& m_chain;
  const Progress& m_progress;
  const PathCost m_most;
  const Wide m_limit;
  std::vector<std::vector<Wide>> m_time, m_bytes;  ///< to the end, by boundary and state
  Weights m_weights;                               ///< the multiplier
  std::vector<std::vector<Wide>> m_weighted;
  Wide m_lowerBound = 0;
  Arcs m_best;
  Wide m_bestFs = 0;
};

/// Converts the result to a path and adds the cost of fixed steps.
Bounded pathOf(const Elimination& elimination, const Chain& chain, const BoundedArcs& found, Wide fixed) {
  Bounded bounded{found.ending, {}, {}, found.isProved, found.lowerBound + fixed};
  if (!found.arcs.empty()) bounded.path = chain.expanded(found.arcs);
  bounded.cost = costOf(elimination, bounded.path);
  return bounded;
}

/// Drops labels of each state. For each dropped label, a kept one is at most `step` slower and not larger. The fastest
/// and the smallest stay.
void thin(LabelSet& set, Wide step) {
  LabelSet thinned;
  for (std::size_t state = 0; state + 1 < set.begins.size(); ++state) {
    thinned.begins.push_back(static_cast<std::uint32_t>(thinned.labels.size()));
    const std::uint32_t begin = set.begins[state], end = set.begins[state + 1];
    for (std::uint32_t i = begin; i < end;) {
      // The last label within one step of the first dropped one is the smallest of them.
      thinned.labels.push_back(set.labels[i]);
      std::uint32_t next = i + 1;
      while (next + 1 < end && set.labels[next + 1].femtoseconds - set.labels[i + 1].femtoseconds <= step) ++next;
      i = next;
    }
  }
  thinned.begins.push_back(static_cast<std::uint32_t>(thinned.labels.size()));
  set = std::move(thinned);
}

bool isLarge(const LabelSet& set) {
  for (std::size_t state = 0; state + 1 < set.begins.size(); ++state) {
    if (set.begins[state + 1] - set.begins[state] > kMostFrontLabels) return true;
  }
  return false;
}

}  // namespace

Bounded fastestWithin(const Elimination& elimination, const Chain& chain, Wide limitBytes, const Progress& progress) {
  const auto found = BudgetSearch(chain, limitBytes - elimination.fixedBytes, progress).run();
  return pathOf(elimination, chain, found, elimination.fixedFs);
}

Bounded smallestWithin(const Elimination& elimination, const Chain& chain, Wide limitFs, const Progress& progress) {
  const auto found = BudgetSearch(chain.withCostsSwapped(), limitFs - elimination.fixedFs, progress).run();
  return pathOf(elimination, chain, found, elimination.fixedBytes);
}

std::optional<FrontSize> frontOf(const Chain& chain, std::size_t most, const Progress& progress,
                                 const std::function<void(const Path&)>& visit) {
  FrontSize front;
  const auto& links = chain.links();
  std::vector<LabelSet> sets{startingAt(0, 1)};
  for (const auto& link : links) {
    if (progress.cancelled()) return std::nullopt;
    LabelSet& labels = sets.emplace_back(extended(sets.back(), *link.relation, {}));
    if (!isLarge(labels)) continue;
    Wide span = 0;
    for (std::size_t s = 0; s + 1 < labels.begins.size(); ++s) {
      if (labels.begins[s] == labels.begins[s + 1]) continue;
      span = std::max(
          span, labels.labels[labels.begins[s + 1] - 1].femtoseconds - labels.labels[labels.begins[s]].femtoseconds);
    }
    thin(labels, std::max<Wide>(1, span / static_cast<Wide>(kMostFrontLabels / 2)));
    front.isExact = false;
  }
  front.points = sets.back().labels.size();
  const std::size_t visited = std::min(most, front.points);
  for (std::size_t i = 0; i < visited; ++i) {
    if (progress.cancelled()) return std::nullopt;
    const std::size_t point = visited < 2 ? 0 : i * (front.points - 1) / (visited - 1);
    visit(chain.expanded(arcsTo(sets, static_cast<std::uint32_t>(point))));
  }
  return front;
}

}  // namespace cleave::solve::optimal
