#include "solve/optimal/eliminated.h"

#include <algorithm>
#include <utility>

namespace cleave::solve::optimal {
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
                         m_elimination.offsets.back() * sizeof(Wide);
}

std::optional<std::size_t> Eliminated::placeOf(NodeId node) const {
  const std::uint32_t place = m_placeOf[node.index()];
  return place == 0 ? std::nullopt : std::optional<std::size_t>(place - 1);
}

const PricedChoice& Eliminated::choiceAt(const Path& path, std::size_t place) const {
  const Level& level = m_elimination.level(place);
  const auto& row = *level.rows[fromOf(level, path[place])];
  return row.open[level.transitions[path[place]].ordinal];
}

template <class Visit>
void Eliminated::forEachChoice(const Path& path, Visit visit) const {
  std::uint32_t state = 0;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const Level& level = m_elimination.level(at);
    const Transition& transition = level.transitions[path[at]];
    visit(at, transition, level.rows[state]->open[transition.ordinal]);
    state = transition.to;
  }
}

void Eliminated::applyAt(std::size_t place, const Choice& choice, Solution& solution) const {
  const Graph& graph = *m_context->problem.graph;
  const NodeId node = m_elimination.layout.order[place];
  if (!solution.computedAs.empty()) {
    for (const ValueId result : graph.node(node).results) solution.computedAs.erase(result);
  }
  applyChoice(graph, node, m_context->variables.writes(node), choice, solution);
}

Solution Eliminated::solutionOf(const Path& path) const {
  Solution solution = emptySolution(*m_context->problem.graph);
  forEachChoice(path, [&](std::size_t at, const Transition&, const PricedChoice& candidate) {
    applyAt(at, candidate.choice, solution);
  });
  return solution;
}

PlanCost Eliminated::priceOf(const Path& path, const Solution& solution) const {
  PlanCost cost;
  for (const auto& fixed : m_elimination.layout.fixed) cost.sum += fixed.row->open.front().cost;
  forEachChoice(path, [&](std::size_t, const Transition& transition, const PricedChoice& candidate) {
    cost.sum += candidate.cost;
    cost.sum += StepCost{.trafficFs = Femtoseconds(transition.femtoseconds - candidate.femtoseconds),
                         .trafficBytes = transition.sharedBytes,
                         .summedGradients = transition.sharedGradients};
  });
  cost.fixedBytes = m_context->model.fixedBytes();
  cost.transientPeak = m_context->model.transientPeak(solution, cost.sum);
  return cost;
}

std::string Eliminated::limitText() const {
  return knowsAllPlans() ? fmt::format("{} plans", limits().plans) : stateLimitText();
}

const Chain* Eliminated::chain(const Progress& progress) const {
  const std::lock_guard lock(m_chainMutex);
  if (!m_chain) m_chain = Chain::of(m_elimination, Chain::kAnyPeak, progress);
  return m_chain ? &*m_chain : nullptr;
}

const Found& Eliminated::find(const Progress& progress) {
  std::size_t searches = kMostSearches;
  m_fastest = bestWithin(limits(), searches, progress);
  m_found = withSlack({}, limits(), m_fastest, progress);
  if (m_found.ending == Found::Ending::OverBudget && !findSmallest(m_found, progress))
    m_found.ending = Found::Ending::Stopped;
  if (m_found.ending == Found::Ending::Plan || m_found.ending == Found::Ending::OverBudget) {
    m_solution = m_found.solution ? *std::exchange(m_found.solution, std::nullopt) : solutionOf(m_found.path);
  }
  m_fastest.solution.reset();
  m_stats.plansChecked = m_found.plansChecked;
  return m_found;
}

}  // namespace cleave::solve::optimal
