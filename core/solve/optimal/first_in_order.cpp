#include "solve/optimal/first_in_order.h"

namespace cleave::solve::optimal {

FirstInOrder::FirstInOrder(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
                           const Progress& progress)
    : m_elimination(elimination),
      m_restriction(restriction),
      m_ways(elimination, {limits.femtoseconds - elimination.fixedFs, limits.bytes - elimination.fixedBytes},
             restriction, progress) {}

bool FirstInOrder::complete() {
  while (!m_steps.empty()) {
    Step& step = m_steps.back();
    const std::size_t place = m_steps.size() - 1;
    const Level& level = m_elimination.level(place);
    const auto* mask = m_restriction.at(place);
    PathCost spent;
    for (; step.transition < level.begins[step.state + 1]; ++step.transition) {
      const Transition& transition = level.transitions[step.transition];
      spent = m_ways.spent(step.before, transition);
      if (isLeft(mask, step.transition) && m_ways.least(place + 1, transition.to, spent)) break;
    }
    if (step.transition == level.begins[step.state + 1]) {
      m_steps.pop_back();
      if (!m_steps.empty()) ++m_steps.back().transition;
      continue;
    }
    if (place + 1 == m_elimination.places()) return true;
    const std::uint32_t to = level.transitions[step.transition].to;
    m_steps.push_back({to, m_elimination.level(place + 1).begins[to], spent});
  }
  return false;
}

const Path* FirstInOrder::next() {
  if (!m_ways.hasAll() || m_elimination.places() == 0) return nullptr;
  if (m_path.empty()) {
    m_steps = {{0, m_elimination.level(0).begins[0], {}}};
  } else if (!m_steps.empty()) {
    ++m_steps.back().transition;
  }
  if (!complete()) return nullptr;
  m_path.clear();
  for (const Step& step : m_steps) m_path.push_back(step.transition);
  return &m_path;
}

}  // namespace cleave::solve::optimal
