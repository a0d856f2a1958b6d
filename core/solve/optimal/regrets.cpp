/// Computes the cost of another choice for a step. One sweep suffices if the budget does not matter. If it does, equal
/// steps share searches.
#include "base/checked.h"
#include "solve/optimal/eliminated.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace cleave::solve::optimal {
namespace {

/// By place: the path of least weight through a transition for which `isWanted(place, candidate)` is true, regardless
/// of the budget.
class BestThrough {
 public:
  template <class IsWantedAt>
  BestThrough(const Elimination& elimination, Weights weights, const Progress& progress, IsWantedAt isWanted)
      : m_elimination(elimination),
        m_weights(weights),
        m_reached(forward(elimination, weights, {}, progress)),
        m_toGo(backward(elimination, weights, {}, progress)),
        m_best(elimination.places()) {
    if (isStopped()) return;
    for (std::size_t place = 0; place < m_best.size(); ++place) {
      const Level& level = elimination.level(place);
      for (std::uint32_t state = 0; state < level.entry->count; ++state) {
        const Wide before = m_reached[elimination.offsets[place] + state];
        if (before >= kUnreachable) continue;
        for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
          const Transition& transition = level.transitions[t];
          const Wide after = m_toGo[elimination.offsets[place + 1] + transition.to];
          if (after >= kUnreachable || !isWanted(place, level.rows[state]->open[transition.ordinal])) continue;
          const Wide sum = before + weightOf(transition) + after;
          if (sum < m_best[place].sum) m_best[place] = {sum, state, t};
        }
      }
    }
  }

  bool isStopped() const { return m_reached.empty() || m_toGo.empty(); }
  /// The weight of that path, fixed steps not counted; kUnreachable if there is no such path.
  Wide sum(std::size_t place) const { return m_best[place].sum; }

  Path path(std::size_t place) const {
    Path path(m_elimination.places());
    std::uint32_t state = m_best[place].state;
    for (std::size_t at = place; at-- > 0;) std::tie(state, path[at]) = before(at, state);
    path[place] = m_best[place].transition;
    state = m_elimination.level(place).transitions[path[place]].to;
    for (std::size_t at = place + 1; at < path.size(); ++at) {
      const Level& level = m_elimination.level(at);
      std::uint32_t t = level.begins[state];
      const Wide wanted = m_toGo[m_elimination.offsets[at] + state];
      while (weightOf(level.transitions[t]) + m_toGo[m_elimination.offsets[at + 1] + level.transitions[t].to] != wanted)
        ++t;
      path[at] = t;
      state = level.transitions[t].to;
    }
    return path;
  }

 private:
  struct Best {
    Wide sum = kUnreachable;
    std::uint32_t state = 0, transition = 0;
  };

  Wide weightOf(const Transition& transition) const { return m_weights.of(transition.femtoseconds, transition.bytes); }

  /// The first state at `place`, and its transition, that lead to `to`.
  std::pair<std::uint32_t, std::uint32_t> before(std::size_t place, std::uint32_t to) const {
    const Level& level = m_elimination.level(place);
    const Wide wanted = m_reached[m_elimination.offsets[place + 1] + to];
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        if (transition.to == to && m_reached[m_elimination.offsets[place] + state] + weightOf(transition) == wanted)
          return {state, t};
      }
    }
    CLEAVE_CHECK(false, "a transition has the weight found");
    return {};
  }

  const Elimination& m_elimination;
  const Weights m_weights;
  std::vector<Wide> m_reached, m_toGo;
  std::vector<Best> m_best;
};

/// Places that can be exchanged. Two stretches of places are equal if they have the same levels and only one state at
/// each end. A path may swap its choices in two equal stretches: its time and its additive bytes stay the same.
class EqualPlaces {
 public:
  explicit EqualPlaces(const Elimination& elimination) : m_stretchOf(elimination.places()) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    const auto& levels = elimination.levelAt;
    const auto at = [&](std::size_t place) { return levels.begin() + static_cast<std::ptrdiff_t>(place); };
    for (std::size_t begin = 0, end = 0; begin < levels.size(); begin = end) {
      for (end = begin + 1; end < levels.size() && elimination.statesBefore(end) > 1;) ++end;
      const auto id = known.try_emplace({at(begin), at(end)}, static_cast<std::uint32_t>(known.size())).first->second;
      std::fill_n(m_stretchOf.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, Stretch{begin, end, id});
    }
  }

  /// Equal for places that can be exchanged.
  std::pair<std::uint32_t, std::size_t> keyOf(std::size_t place) const {
    return {m_stretchOf[place].id, place - m_stretchOf[place].begin};
  }

  struct Stretch {
    std::size_t begin = 0, end = 0;
    std::uint32_t id = 0;  ///< equal for equal stretches
  };
  const Stretch& stretchOf(std::size_t place) const { return m_stretchOf[place]; }

 private:
  std::vector<Stretch> m_stretchOf;  ///< by place
};

}  // namespace

/// Data that the answers for many places share.
struct Eliminated::OtherChoices {
  struct Searched {
    std::size_t place = 0;
    Found found;
  };
  const BestThrough fastest, smallest;
  const EqualPlaces equal;
  std::map<std::tuple<std::uint32_t, std::size_t, std::uint32_t>, std::optional<Searched>> known;  ///< by keyOf and
                                                                                                   ///< choice
  std::size_t searches = 0;
};

/// A swap of stretches changes only the transient peak of a plan's cost, and only their own steps of its solution.
bool Eliminated::fitsSwapped(const OtherChoices& others, Found& found, std::size_t a, std::size_t b) const {
  const auto &first = others.equal.stretchOf(a), &second = others.equal.stretchOf(b);
  if (!found.solution) found.solution = solutionOf(found.path);
  const auto copyStretch = [&](std::size_t begin, std::size_t like) {
    for (std::size_t i = 0; i < first.end - first.begin; ++i)
      applyAt(begin + i, choiceAt(found.path, like + i).choice, *found.solution);
  };
  copyStretch(first.begin, second.begin);
  copyStretch(second.begin, first.begin);
  PlanCost cost = found.cost;
  cost.transientPeak = m_context->model.transientPeak(*found.solution, cost.sum);
  copyStretch(first.begin, first.begin);
  copyStretch(second.begin, second.begin);
  return limits().allow(cost);
}

std::vector<std::optional<Femtoseconds>> Eliminated::leastTimes(const IsWanted& isWanted) const {
  const auto& order = m_elimination.layout.order;
  const BestThrough through(m_elimination, kTime, {}, [&](std::size_t place, const PricedChoice& candidate) {
    return isWanted(order[place], candidate.choice);
  });
  std::vector<std::optional<Femtoseconds>> least(m_context->problem.graph->nodes.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (through.sum(place) < kUnreachable)
      least[order[place].index()] = Femtoseconds(through.sum(place) + m_elimination.fixedFs);
  }
  return least;
}

Found Eliminated::fastestWithOther(const Path& path, std::size_t place, const Limits& within,
                                   const Progress& progress) const {
  const Level& level = m_elimination.level(place);
  const std::uint32_t chosen = choiceAt(path, place).identity;
  Restriction::Mask isOther(level.transitions.size(), false);
  for (std::uint32_t state = 0; state < level.entry->count; ++state) {
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      isOther[t] = level.rows[state]->open[level.transitions[t].ordinal].identity != chosen;
    }
  }
  return fastestOfMany({place, std::move(isOther)}, within, progress);
}

Found Eliminated::bestWithin(const Limits& within, std::size_t& searchesLeft, const Progress& progress) const {
  Found found = fastestWithin({}, within, progress);
  return improve(within, searchesLeft, found, progress) ? found : Found();
}

bool Eliminated::improve(const Limits& within, std::size_t& searchesLeft, Found& found,
                         const Progress& progress) const {
  if (found.ending != Found::Ending::Plan || found.isProved || !knowsAllPlans()) return true;
  const auto& order = m_elimination.layout.order;
  const EqualPlaces equal(m_elimination);
  const Path before = found.path;
  // The loop ends when no layer leads to a faster plan, so later questions cannot find a faster plan.
  for (bool isFaster = true; isFaster;) {
    isFaster = false;
    std::set<std::tuple<std::uint32_t, std::size_t, std::uint32_t>> seen;
    for (std::size_t place = 0; place < order.size(); ++place) {
      if (!m_context->variables.layer(order[place])) continue;
      const auto [stretch, offset] = equal.keyOf(place);
      if (!seen.insert({stretch, offset, choiceAt(found.path, place).identity}).second) continue;
      if (searchesLeft == 0) break;
      --searchesLeft;
      Found other = fastestWithOther(found.path, place, within, progress);
      if (other.ending == Found::Ending::Stopped) return false;
      found.plansChecked += other.plansChecked;
      if (other.ending != Found::Ending::Plan || other.cost.femtoseconds() >= found.cost.femtoseconds()) continue;
      found.path = std::move(other.path);
      found.solution.reset();
      found.cost = other.cost;
      isFaster = true;
    }
  }
  if (found.path == before) return true;
  found.isProved = found.lowerBoundFs >= found.cost.femtoseconds().count();
  if (within.isFirst) chooseFirst({}, within, found, progress);
  return true;
}

/// Bounds and proofs depend on time, additive bytes and needs of single steps, so they are valid for all exchangeable
/// places. Its own transient peak decides whether a plan fits.
SmallestRegret Eliminated::smallestAt(std::size_t place, OtherChoices& others, const Progress& progress) const {
  using Kind = SmallestRegret::Kind;
  const Wide time = others.fastest.sum(place), bytes = others.smallest.sum(place);
  const Femtoseconds fastest = m_fastest.cost.femtoseconds();
  if (!knowsAllPlans() && time >= *m_elimination.droppedFs) return {Kind::NotKnown, {}};
  if (time >= kUnreachable) return {Kind::NoOther, {}};
  if (knowsAllPlans() && bytes + m_elimination.fixedBytes > budget()) return {Kind::OverBudget, {}};
  const auto [stretch, offset] = others.equal.keyOf(place);
  auto& known = others.known[{stretch, offset, choiceAt(m_found.path, place).identity}];
  const auto serves = [&] {
    if (!known) return false;
    Found& found = known->found;
    if (found.ending != Found::Ending::Plan || place == known->place) return true;
    // Memory live at one moment of this plan was live at one or two moments of the other plan.
    const std::int64_t most =
        saturatingAdd(found.cost.bytes(), saturatingAdd(found.cost.transientPeak, found.cost.sum.activations));
    return most <= budget() || fitsSwapped(others, known->found, known->place, place);
  };
  if (!serves()) {
    Found free;
    free.path = others.fastest.path(place);
    free.cost = priceOf(free.path);
    free.ending = Found::Ending::Plan;
    if (limits().allow(free.cost)) {
      known = {place, std::move(free)};
    } else {
      if (!knowsAllPlans() || ++others.searches > kMostSearches) return {Kind::NotKnown, {}};
      known = {place, fastestWithOther(m_found.path, place, limits(), progress)};
    }
  }
  const Found& found = known->found;
  if (!found.isProved || found.ending == Found::Ending::Stopped) return {Kind::NotKnown, {}};
  if (found.ending == Found::Ending::Plan) return {Kind::Costs, found.cost.femtoseconds() - fastest};
  return {found.ending == Found::Ending::OverBudget ? Kind::OverBudget : Kind::NoOther, {}};
}

std::vector<SmallestRegret> Eliminated::smallestRegrets(std::span<const NodeId> nodes, const Progress& progress) const {
  const auto isOther = [&](std::size_t place, const PricedChoice& candidate) {
    return candidate.identity != choiceAt(m_found.path, place).identity;
  };
  OtherChoices others{{m_elimination, kTime, progress, isOther},
                      {m_elimination, kBytes, progress, isOther},
                      EqualPlaces(m_elimination),
                      {},
                      0};
  const bool isStopped = others.fastest.isStopped() || others.smallest.isStopped();
  std::vector<SmallestRegret> smallest(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto place = placeOf(nodes[i]);
    if (!place) continue;
    const bool isOver = isStopped || progress.cancelled();
    smallest[i] = isOver ? SmallestRegret{SmallestRegret::Kind::NotKnown, {}} : smallestAt(*place, others, progress);
  }
  return smallest;
}

}  // namespace cleave::solve::optimal
