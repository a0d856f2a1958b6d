#include "solve/optimal/first_in_order.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostWays = 1'000'000;  // 32 bytes each

bool isBefore(const PathCost& a, const PathCost& b) {
  return a.femtoseconds != b.femtoseconds ? a.femtoseconds < b.femtoseconds : a.bytes < b.bytes;
}

}  // namespace

FirstInOrder::FirstInOrder(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
                           const Progress& progress)
    : m_elimination(elimination),
      m_restriction(restriction),
      m_limits{limits.femtoseconds - elimination.fixedFs, limits.bytes - elimination.fixedBytes} {
  m_hasWays = findWays(progress);
}

bool FirstInOrder::findWays(const Progress& progress) {
  m_weights = multiplierFor(m_elimination, m_limits.bytes, m_restriction, progress);
  const auto time = forward(m_elimination, kTime, m_restriction, progress),
             bytes = forward(m_elimination, kBytes, m_restriction, progress),
             weighted = forward(m_elimination, m_weights, m_restriction, progress);
  if (time.empty() || bytes.empty() || weighted.empty()) return false;
  const std::size_t places = m_elimination.places();
  m_ways.resize(m_elimination.offsets.back());
  for (std::size_t at = m_elimination.offsets[places]; at < m_ways.size(); ++at) m_ways[at].emplace_back();
  std::size_t count = 0;
  for (std::size_t place = places; place-- > 0;) {
    if (progress.cancelled()) return false;
    for (std::uint32_t state = 0; state < m_elimination.level(place).entry->count; ++state) {
      const std::size_t at = m_elimination.offsets[place] + state;
      if (time[at] >= kUnreachable) continue;
      m_ways[at] = waysOn(place, state, {time[at], bytes[at]}, weighted[at]);
      count += m_ways[at].size();
      if (count > kMostWays) return false;
    }
  }
  return true;
}

FirstInOrder::Ways FirstInOrder::waysOn(std::size_t place, std::uint32_t state, const PathCost& reached,
                                        Wide weighted) const {
  const Level& level = m_elimination.level(place);
  const Wide most = m_weights.of(m_limits);
  Ways ways;
  for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
    if (!m_restriction.allows(place, t)) continue;
    const Transition& transition = level.transitions[t];
    for (const PathCost& behind : m_ways[m_elimination.offsets[place + 1] + transition.to]) {
      const PathCost way{transition.femtoseconds + behind.femtoseconds, transition.bytes + behind.bytes};
      if (reached.femtoseconds + way.femtoseconds > m_limits.femtoseconds || reached.bytes + way.bytes > m_limits.bytes)
        continue;
      if (weighted + m_weights.of(way) <= most) ways.push_back(way);
    }
  }
  std::sort(ways.begin(), ways.end(), isBefore);
  Wide fewest = kUnreachable;
  std::erase_if(ways, [&](const PathCost& way) {
    const bool isBeaten = way.bytes >= fewest;
    fewest = std::min(fewest, way.bytes);
    return isBeaten;
  });
  return ways;
}

bool FirstInOrder::fits(std::size_t place, std::uint32_t state, const PathCost& spent) const {
  const Ways& ways = m_ways[m_elimination.offsets[place] + state];
  // Of those that are fast enough, the last holds least.
  const auto slower = std::upper_bound(ways.begin(), ways.end(), m_limits.femtoseconds - spent.femtoseconds,
                                       [](Wide room, const PathCost& way) { return room < way.femtoseconds; });
  return slower != ways.begin() && spent.bytes + std::prev(slower)->bytes <= m_limits.bytes;
}

bool FirstInOrder::complete() {
  while (!m_steps.empty()) {
    Step& step = m_steps.back();
    const std::size_t place = m_steps.size() - 1;
    const Level& level = m_elimination.level(place);
    PathCost spent;
    for (; step.transition < level.begins[step.state + 1]; ++step.transition) {
      const Transition& transition = level.transitions[step.transition];
      spent = {step.before.femtoseconds + transition.femtoseconds, step.before.bytes + transition.bytes};
      if (m_restriction.allows(place, step.transition) && fits(place + 1, transition.to, spent)) break;
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
  if (!m_hasWays || m_elimination.places() == 0) return nullptr;
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
