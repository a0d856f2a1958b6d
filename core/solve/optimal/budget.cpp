#include "solve/optimal/budget.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostLabels = 8'000'000;      // 24 bytes each
constexpr std::size_t kMostFrontLabels = 16'000;     // at one state
constexpr int kMostMultipliers = 64;

using Arcs = std::vector<std::uint32_t>;

/// What a search on one chain shares. Costs and limits are those of places alone.
class BudgetSearch {
 public:
  BudgetSearch(const Elimination& elimination, const Chain& chain, std::int64_t limit, const Progress& progress)
      : m_elimination(elimination),
        m_chain(chain),
        m_limit(std::min(limit, kUnreachable<std::int64_t> - 1)),
        m_progress(progress) {}

  Bounded run() {
    m_time = backward<std::int64_t>(m_chain, {1, 0});
    m_bytes = backward<std::int64_t>(m_chain, {0, 1});
    if (m_time.front().front() >= kUnreachable<std::int64_t>) return {Bounded::Outcome::TooMuch, {}, {}, true, 0};
    const Arcs fast = follow(m_time, Weights<std::int64_t>{1, 0});
    if (costOf(fast).bytes <= m_limit) return found(fast, costOf(fast).femtoseconds, true);
    const Arcs lean = follow(m_bytes, Weights<std::int64_t>{0, 1});
    if (costOf(lean).bytes > m_limit) {
      Bounded result = found(lean, 0, true);
      result.outcome = Bounded::Outcome::TooMuch;
      return result;
    }
    m_best = lean;
    m_bestFs = costOf(lean).femtoseconds;
    findMultiplier(costOf(fast), costOf(lean));
    improve(dive());
    if (m_progress.cancelled()) return {};
    if (m_bestFs <= m_lowerBound) return found(m_best, m_bestFs, true);
    return label();
  }

 private:
  Bounded found(const Arcs& arcs, std::int64_t lowerBound, bool isProved) const {
    Bounded result{Bounded::Outcome::Found, m_chain.expanded(arcs), {}, isProved, lowerBound + m_elimination.fixedFs};
    result.cost = optimal::costOf(m_elimination, result.path);
    return result;
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

  template <class T>
  Arcs follow(const std::vector<std::vector<T>>& toGo, Weights<T> weights) const {
    Arcs arcs;
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < m_chain.links().size(); ++i) {
      std::uint32_t a = m_chain.links()[i].relation->begins[state];
      while (weights.of(arcAt(i, a).femtoseconds, arcAt(i, a).bytes) + toGo[i + 1][arcAt(i, a).to] != toGo[i][state]) ++a;
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

  /// The multiplier whose bound is highest: the slope of the lower convex hull of all plans where it meets the limit. A
  /// ratio of integers, so that bounds are exact.
  void findMultiplier(PathCost over, PathCost within) {
    m_lowerBound = over.femtoseconds;
    m_weights = {1, 0};
    m_weighted.assign(m_time.size(), {});
    for (std::size_t i = 0; i < m_time.size(); ++i) m_weighted[i].assign(m_time[i].begin(), m_time[i].end());
    for (int i = 0; i < kMostMultipliers && !m_progress.cancelled(); ++i) {
      const Weights<Wide> weights{over.bytes - within.bytes, within.femtoseconds - over.femtoseconds};
      auto toGo = backward<Wide>(m_chain, weights);
      const Wide least = toGo.front().front();
      const Arcs arcs = follow(toGo, weights);
      const Wide bound = (least - weights.bytes * m_limit + weights.time - 1) / weights.time;
      if (bound >= m_lowerBound) {
        m_lowerBound = static_cast<std::int64_t>(bound);
        m_weights = weights;
        m_weighted = std::move(toGo);
      }
      improve(arcs);
      if (least >= weights.of(over.femtoseconds, over.bytes)) return;
      (costOf(arcs).bytes <= m_limit ? within : over) = costOf(arcs);
    }
  }

  /// Lower bound of time, times m_weights.time, for all ways on from `state`.
  Wide boundOf(std::size_t boundary, std::uint32_t state, std::int64_t fs, std::int64_t bytes) const {
    return m_weights.of(fs, bytes) + m_weighted[boundary][state] - m_weights.bytes * m_limit;
  }

  /// A good plan within the limit: forwards, always the arc with the lowest bound that leaves room for the rest.
  Arcs dive() const {
    Arcs arcs;
    PathCost sum;
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < m_chain.links().size(); ++i) {
      const Relation& relation = *m_chain.links()[i].relation;
      std::optional<std::pair<Wide, std::uint32_t>> best;
      for (std::uint32_t a = relation.begins[state]; a < relation.begins[state + 1]; ++a) {
        const Arc& arc = relation.arcs[a];
        const std::int64_t fs = sum.femtoseconds + arc.femtoseconds, bytes = sum.bytes + arc.bytes;
        if (bytes + m_bytes[i + 1][arc.to] > m_limit) continue;
        const Wide bound = std::max(m_weights.time * (fs + m_time[i + 1][arc.to]), boundOf(i + 1, arc.to, fs, bytes));
        if (!best || bound < best->first) best = {bound, a};
      }
      arcs.push_back(best->second);  // the limit holds a path from every state that is reached
      sum.femtoseconds += arcAt(i, best->second).femtoseconds;
      sum.bytes += arcAt(i, best->second).bytes;
      state = arcAt(i, best->second).to;
    }
    return arcs;
  }

  Bounded label() {
    const auto& links = m_chain.links();
    std::vector<LabelSet> sets{startingAt(0, 1)};
    std::size_t labels = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (m_progress.cancelled()) return {};
      sets.push_back(extended(sets.back(), *links[i].relation, [&](std::uint32_t state, std::int64_t fs, std::int64_t bytes) {
        return bytes + m_bytes[i + 1][state] <= m_limit && fs + m_time[i + 1][state] < m_bestFs &&
               boundOf(i + 1, state, fs, bytes) < m_weights.time * m_bestFs;
      }));
      labels += sets.back().labels.size();
      if (labels > kMostLabels) return found(m_best, m_lowerBound, false);
    }
    if (sets.back().labels.empty()) return found(m_best, m_bestFs, true);
    Arcs arcs(links.size());
    std::uint32_t at = 0;
    for (std::size_t i = links.size(); i-- > 0;) {
      const Label& label = sets[i + 1].labels[at];
      arcs[i] = label.arc;
      at = label.parent;
    }
    return found(arcs, sets.back().labels.front().femtoseconds, true);
  }

  const Elimination& m_elimination;
  const Chain& m_chain;
  const std::int64_t m_limit;
  const Progress& m_progress;
  std::vector<std::vector<std::int64_t>> m_time, m_bytes;  ///< to the end, by boundary and state
  Weights<Wide> m_weights;                                 ///< the multiplier
  std::vector<std::vector<Wide>> m_weighted;
  std::int64_t m_lowerBound = 0;
  Arcs m_best;
  std::int64_t m_bestFs = 0;
};

/// Fewer labels for each state, so that for each one dropped another is at most `step` slower and no larger. The fastest
/// and the smallest stay.
void thin(LabelSet& set, std::int64_t step) {
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

Bounded cheapestWithin(const Elimination& elimination, const Chain& chain, std::int64_t limitBytes, const Progress& progress) {
  return BudgetSearch(elimination, chain, limitBytes - elimination.fixedBytes, progress).run();
}

std::optional<FrontOfPaths> frontOf(const Elimination& elimination, const Chain& chain, const Progress& progress) {
  FrontOfPaths front;
  LabelSet labels = startingAt(0, 1);
  std::int64_t slower = 0;
  for (const auto& link : chain.links()) {
    if (progress.cancelled()) return std::nullopt;
    labels = extended(labels, *link.relation, {});
    if (!isLarge(labels)) continue;
    std::int64_t span = 0;
    for (std::size_t s = 0; s + 1 < labels.begins.size(); ++s) {
      if (labels.begins[s] == labels.begins[s + 1]) continue;
      span = std::max(span, labels.labels[labels.begins[s + 1] - 1].femtoseconds - labels.labels[labels.begins[s]].femtoseconds);
    }
    const std::int64_t step = std::max<std::int64_t>(1, span / static_cast<std::int64_t>(kMostFrontLabels / 2));
    thin(labels, step);
    slower += step;
    front.isExact = false;
  }
  for (const Label& label : labels.labels) {
    front.points.push_back({label.femtoseconds + elimination.fixedFs, label.bytes + elimination.fixedBytes});
  }
  if (!front.isExact && !front.points.empty() && front.points.front().femtoseconds > 0) {
    front.worstGap = static_cast<double>(slower) / static_cast<double>(front.points.front().femtoseconds);
  }
  return front;
}

}  // namespace cleave::solve::optimal
