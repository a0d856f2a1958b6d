#include "solve/optimal/budget.h"
#include "solve/optimal/eliminated.h"
#include "solve/optimal/paths_in_order.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::uint64_t kMostPlansChecked = 10'000;

/// What distinguishes two possibilities of a value: its placement, and its layer's strategy.
struct Possibility {
  Placement placement;
  std::optional<rules::Strategy> strategy;
  std::size_t rank = 0;              ///< in candidate order
  std::vector<bool> isTaken;         ///< by transition: those that take it
};

/// Index of a value among what its step writes.
std::size_t writeOf(std::span<const ValueId> writes, ValueId value) {
  return static_cast<std::size_t>(std::find(writes.begin(), writes.end(), value) - writes.begin());
}

/// Where an option stands among all of its layer's, whatever its input is.
std::size_t rankAmong(const std::vector<rules::StrategyOption>& offered, const rules::StrategyOption& option) {
  const auto same = std::find_if(offered.begin(), offered.end(), [&](const rules::StrategyOption& o) {
    return o.strategy == option.strategy && o.input == option.input && o.weight == option.weight && o.result == option.result;
  });
  return static_cast<std::size_t>(same - offered.begin());
}

std::vector<Possibility> possibilitiesOf(const Context& context, const Level& level, NodeId node, ValueId value) {
  const auto writes = context.variables.writes(node);
  const std::size_t index = writeOf(writes, value);
  const bool isResult = index < context.problem.graph->node(node).results.size();
  const auto& layer = context.variables.layer(node);
  std::vector<rules::StrategyOption> offered;
  if (layer) offered = rules::layerOptions(*context.problem.graph, node, *layer, context.problem.context).offered;
  std::vector<Possibility> found;
  for (std::uint32_t state = 0; state < level.entry->count; ++state) {
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      const std::uint32_t ordinal = level.transitions[t].ordinal;
      const Choice& choice = level.answers[state]->open[ordinal].choice;
      const Placement placement = placementsOf(choice)[index];
      std::optional<rules::Strategy> strategy;
      if (isResult && choice.strategy) strategy = choice.strategy->strategy;
      const std::size_t rank = layer ? rankAmong(offered, *choice.strategy) : ordinal;
      auto known = std::find_if(found.begin(), found.end(), [&](const Possibility& p) {
        return p.placement == placement && p.strategy == strategy;
      });
      if (known == found.end()) {
        found.push_back({placement, strategy, rank, std::vector<bool>(level.transitions.size(), false)});
        known = std::prev(found.end());
      }
      known->rank = std::min(known->rank, rank);
      known->isTaken[t] = true;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Possibility& a, const Possibility& b) { return a.rank < b.rank; });
  return found;
}

}  // namespace

Result<std::vector<Regret>> Eliminated::regrets(ValueId value, const Progress& progress) const {
  const Graph& graph = *m_context->problem.graph;
  if (!value.isValid() || value.index() >= graph.values.size()) {
    return fail(ErrorCode::BadUsage, "The graph has {} values; there is no value {}.", graph.values.size(), value.raw());
  }
  const NodeId node = m_context->variables.decider(graph.value(value).producer);
  const auto place = placeOf(node);
  if (!place) return std::vector<Regret>{{Placement(), std::nullopt, true, 0, 0}};
  std::vector<Regret> regrets;
  for (Possibility& possibility : possibilitiesOf(*m_context, m_elimination.level(*place), node, value)) {
    Regret regret{possibility.placement, possibility.strategy};
    regret.isChosen = possibility.isTaken[m_found.path[*place]];
    if (regret.isChosen) {
      regret.extraFs = 0;
      regret.extraBytes = 0;
    } else {
      const Found other = cheapest({*place, std::move(possibility.isTaken)}, progress);
      if (other.outcome == Found::Outcome::Stopped) return progress.cancelledError("comparing placements");
      if (other.outcome == Found::Outcome::NoPlan) continue;
      if (other.outcome == Found::Outcome::Plan) {
        regret.extraFs = other.cost.femtoseconds() - m_found.cost.femtoseconds();
        regret.extraBytes = other.cost.bytes() - m_found.cost.bytes();
      }
    }
    regrets.push_back(std::move(regret));
  }
  return regrets;
}

std::vector<std::optional<std::int64_t>> Eliminated::smallestRegrets() const {
  std::vector<std::optional<std::int64_t>> smallest(m_context->problem.graph->nodes.size());
  const auto reached = forward(m_elimination, {});
  const auto toGo = backward<std::int64_t>(m_elimination, {1, 0}, {}, {});
  const std::int64_t least = toGo.front();
  for (std::size_t place = 0; place < m_elimination.places(); ++place) {
    const Level& level = m_elimination.level(place);
    const std::uint32_t chosen = takenAt(m_found.path, place).identity;
    std::int64_t best = kUnreachable<std::int64_t>;
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      const std::int64_t before = reached[m_elimination.offsets[place] + state];
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        if (level.answers[state]->open[transition.ordinal].identity == chosen) continue;
        const std::int64_t behind = toGo[m_elimination.offsets[place + 1] + transition.to];
        if (before >= kUnreachable<std::int64_t> || behind >= kUnreachable<std::int64_t>) continue;
        best = std::min(best, before + transition.femtoseconds + behind);
      }
    }
    if (best < kUnreachable<std::int64_t>) smallest[m_elimination.layout.order[place].index()] = best - least;
  }
  return smallest;
}

Result<Optimum::Front> Eliminated::front(const Progress& progress) const {
  const Chain* whole = chain(progress);
  const auto paths = whole ? frontOf(m_elimination, *whole, progress) : std::nullopt;
  if (!paths) return progress.cancelledError("weighing time against memory");
  Front front;
  front.isExact = paths->isExact && !m_elimination.droppedFs;
  front.worstGap = paths->worstGap;
  for (const PathCost& point : paths->points) front.points.push_back({point.femtoseconds, point.bytes});
  return front;
}

Result<Solution> Eliminated::planAt(const ParetoPoint& point, const Progress& progress) const {
  const Chain* whole = chain(progress);
  const Bounded within = whole ? cheapestWithin(m_elimination, *whole, point.bytes, progress) : Bounded{};
  if (within.outcome == Bounded::Outcome::Stopped) return progress.cancelledError("finding the plan");
  if (within.outcome == Bounded::Outcome::TooMuch) {
    return fail(ErrorCode::BadUsage, "No plan holds as little as {} bytes on each rank; the least is {}.", point.bytes, within.cost.bytes);
  }
  return solutionOf(within.path);
}

Result<std::vector<Solution>> Eliminated::best(std::size_t k, const Progress& progress) const {
  std::vector<Solution> plans;
  PathsInOrder paths(m_elimination, budget(), kUnreachable<std::int64_t>, {}, progress);
  for (std::uint64_t checked = 0; plans.size() < k && checked < k + kMostPlansChecked; ++checked) {
    const auto state = paths.next();
    if (state == PathsInOrder::State::Stopped) return progress.cancelledError("listing plans");
    if (state != PathsInOrder::State::Found) break;
    Solution plan = solutionOf(paths.path());
    if (m_context->model.evaluate(plan).bytes() <= budget()) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace cleave::solve::optimal
