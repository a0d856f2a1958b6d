#include "base/quantities.h"
#include "solve/optimal/budget.h"
#include "solve/optimal/eliminated.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostPoints = 60;   ///< largest front of additive bytes that is walked point by point
constexpr std::size_t kMostWalked = 120;  ///< limit of points of a front that is walked
constexpr std::size_t kMostAfter = 8;     ///< limit of points after the last budget of a front that is not walked

/// A possible placement of a value, and its layer's strategy.
struct Possibility {
  Placement placement;
  std::optional<rules::Strategy> strategy;
  bool isCopied = false;
  std::size_t rank = 0;        ///< in candidate order
  std::vector<bool> isChosen;  ///< by transition: true if it has this placement and strategy
};

/// Index of a value among the writes of its step.
std::size_t writeOf(std::span<const ValueId> writes, ValueId value) {
  return static_cast<std::size_t>(std::find(writes.begin(), writes.end(), value) - writes.begin());
}

/// Position of an option among the options of its layer.
std::size_t rankAmong(const std::vector<rules::LayerStrategy>& offered, const rules::LayerStrategy& option) {
  const auto same = std::find_if(offered.begin(), offered.end(), [&](const rules::LayerStrategy& o) {
    return o.strategy == option.strategy && o.input == option.input && o.weight == option.weight &&
           o.result == option.result;
  });
  return static_cast<std::size_t>(same - offered.begin());
}

std::vector<Possibility> possibilitiesOf(const Context& context, const Level& level, NodeId node, ValueId value) {
  const auto writes = context.variables.writes(node);
  const std::size_t index = writeOf(writes, value);
  const bool isResult = index < context.problem.graph->node(node).results.size();
  const auto& layer = context.variables.layer(node);
  std::vector<rules::LayerStrategy> offered;
  if (layer) offered = layerStrategiesOf(context.problem, context.variables, node).offered;
  std::vector<Possibility> found;
  for (std::uint32_t state = 0; state < level.entry->count; ++state) {
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      const std::uint32_t ordinal = level.transitions[t].ordinal;
      const Choice& choice = level.rows[state]->open[ordinal].choice;
      const Placement placement = placementsOf(choice)[index];
      std::optional<rules::Strategy> strategy;
      if (isResult && choice.strategy) strategy = choice.strategy->strategy;
      const bool isCopied =
          strategy && effectiveStrategy(*choice.strategy, context.problem.context.worldSize) != *strategy;
      const std::size_t rank = layer ? rankAmong(offered, *choice.strategy) : ordinal;
      auto known = std::find_if(found.begin(), found.end(), [&](const Possibility& p) {
        return p.placement == placement && p.strategy == strategy && p.isCopied == isCopied;
      });
      if (known == found.end()) {
        found.push_back({placement, strategy, isCopied, rank, std::vector<bool>(level.transitions.size(), false)});
        known = std::prev(found.end());
      }
      known->rank = std::min(known->rank, rank);
      known->isChosen[t] = true;
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Possibility& a, const Possibility& b) { return a.rank < b.rank; });
  return found;
}

/// No plan that needs at most `bytes` is faster than `bound`.
struct FrontBound {
  std::int64_t bytes = 0;
  Wide bound = 0;
};

/// A plan missing from the front next to a point needs less than the point before, so the bound of plans that fit there
/// is valid for it.
double worstGapOf(const std::vector<ParetoPoint>& points, const std::vector<FrontBound>& bounds) {
  double worst = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int64_t most = i == 0 ? points.front().bytes : points[i - 1].bytes - 1;
    Wide bound = 0;
    for (const FrontBound& known : bounds) {
      if (known.bytes >= most) bound = std::max(bound, known.bound);
    }
    const auto gap = static_cast<double>(points[i].femtoseconds.count() - bound);
    worst = std::max(worst, gap / std::max(1.0, static_cast<double>(points[i].femtoseconds)));
  }
  return worst;
}

}  // namespace

Result<std::vector<Regret>> Eliminated::regrets(ValueId value, const Progress& progress) const {
  const Graph& graph = *m_context->problem.graph;
  if (!value.isValid() || value.index() >= graph.values.size()) {
    return fail(ErrorCode::BadUsage, "The graph has {} values, so there is no value {}.", graph.values.size(),
                value.raw());
  }
  const NodeId node = m_context->variables.decider(graph.value(value).producer);
  const auto place = placeOf(node);
  if (!place)
    return std::vector<Regret>{
        {.isChosen = true, .extraFs = Femtoseconds(), .extraBytes = 0, .fastestExtraFs = Femtoseconds()}};
  std::vector<Regret> regrets;
  for (Possibility& possibility : possibilitiesOf(*m_context, m_elimination.level(*place), node, value)) {
    Regret regret{possibility.placement, possibility.strategy, possibility.isCopied};
    regret.isChosen = possibility.isChosen[m_found.path[*place]];
    if (regret.isChosen) {
      regret.extraFs = Femtoseconds();
      regret.extraBytes = 0;
      regret.fastestExtraFs = Femtoseconds();
    } else {
      const Restriction restriction{*place, std::move(possibility.isChosen)};
      const Found fastest = fastestWithin(restriction, limits(), progress);
      if (fastest.ending == Found::Ending::Plan)
        regret.fastestExtraFs = fastest.cost.femtoseconds() - m_found.cost.femtoseconds();
      const Found other = withSlack(restriction, limits(), fastest, progress);
      if (other.ending == Found::Ending::Stopped) return progress.cancelledError("comparing placements");
      if (other.ending == Found::Ending::NoPlan) continue;
      regret.isProved = other.isProved;
      if (other.ending == Found::Ending::Plan) {
        regret.extraFs = other.cost.femtoseconds() - m_found.cost.femtoseconds();
        regret.extraBytes = other.cost.bytes() - m_found.cost.bytes();
      }
    }
    regrets.push_back(std::move(regret));
  }
  return regrets;
}

/// Each point is the best plan for a budget. If the front of additive bytes has few points, the next budget is one byte
/// less than the last plan needs, which misses no point. Otherwise the budgets follow that front and continue from its
/// end.
Result<Optimum::Front> Eliminated::front(const Progress& progress) const {
  const Chain* whole = chain(progress);
  std::vector<std::int64_t> budgets;
  const auto paths = whole ? frontOf(*whole, kMostPoints, progress,
                                     [&](const Path& path) { budgets.push_back(priceOf(path).bytes()); })
                           : std::nullopt;
  if (!paths) return progress.cancelledError("weighing time against memory");
  Front front;
  const bool isWalked = paths->isExact && paths->points <= kMostPoints;
  front.isExact = isWalked && !m_elimination.droppedFs;
  std::vector<FrontBound> bounds;
  Limits within = forOneOfMany({});
  std::size_t searches = kMostSearches;
  front.isEndKnown = false;
  const std::size_t most = isWalked ? kMostWalked : budgets.size() + kMostAfter;
  for (std::size_t i = 0; i < most; ++i) {
    const bool isListed = !isWalked && i < budgets.size();
    if (isListed) {
      within.total = budgets[i];
    } else if (!front.points.empty()) {
      const auto fewest = std::min_element(front.points.begin(), front.points.end(),
                                           [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
      within.total = fewest->bytes - 1;
    }
    const Found found = bestWithin(within, searches, progress);
    if (found.ending == Found::Ending::Stopped) return progress.cancelledError("weighing time against memory");
    if (found.ending != Found::Ending::Plan) {
      if (isListed) continue;
      front.isEndKnown = found.isProved;
      break;
    }
    front.isExact = front.isExact && found.isProved;
    bounds.push_back({within.total, found.lowerBoundFs});
    const ParetoPoint point{found.cost.femtoseconds(), found.cost.bytes(), found.cost.transientPeak};
    std::erase_if(front.points, [&](const ParetoPoint& other) {
      return other.femtoseconds >= point.femtoseconds && other.bytes >= point.bytes;
    });
    const bool isBeaten = std::any_of(front.points.begin(), front.points.end(), [&](const ParetoPoint& other) {
      return other.femtoseconds <= point.femtoseconds && other.bytes <= point.bytes;
    });
    if (!isBeaten) front.points.push_back(point);
    if (isWalked && i + 1 == most) front.isExact = false;
  }
  std::sort(front.points.begin(), front.points.end(),
            [](const ParetoPoint& a, const ParetoPoint& b) { return a.bytes > b.bytes; });
  if (!front.isExact) front.worstGap = worstGapOf(front.points, bounds);
  return front;
}

Result<Solution> Eliminated::planAt(const ParetoPoint& point, const Progress& progress) const {
  std::size_t searches = kMostSearches;
  const Found found = bestWithin({.total = point.bytes}, searches, progress);
  switch (found.ending) {
    case Found::Ending::Plan: return solutionOf(found.path);
    case Found::Ending::Stopped: return progress.cancelledError("finding the plan");
    case Found::Ending::OverBudget:
    case Found::Ending::NoPlan: break;
  }
  return fail(ErrorCode::BadUsage, "No plan within {} per rank was found. The smallest plan found needs {} bytes.",
              counted(point.bytes, "byte"), found.cost.bytes());
}

}  // namespace cleave::solve::optimal

namespace cleave::solve {

std::string toText(const Optimum::Front& front) {
  const std::size_t count = front.points.size();
  std::string text;
  if (count == 1 && front.isExact && front.isEndKnown) return "One plan is both the fastest and the smallest.";
  if (front.isExact) {
    text = counted(std::ssize(front.points), "plan is", "plans are") + " on the Pareto front of time and memory";
  } else {
    text = fmt::format(
        "{} near the Pareto front of time and memory. A missing plan is at most {:.2f} % faster than the next smaller "
        "plan here",
        counted(std::ssize(front.points), "plan is", "plans are"), 100 * front.worstGap);
  }
  if (!front.isEndKnown) text += ". A plan that needs less memory than the smallest one here may exist";
  return text + ".";
}

}  // namespace cleave::solve
