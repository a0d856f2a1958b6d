#include "solve/optimal/ways_on.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostWays = 1'000'000;  // 32 bytes each

bool isBefore(const PathCost& a, const PathCost& b) {
  return a.femtoseconds != b.femtoseconds ? a.femtoseconds < b.femtoseconds : a.bytes < b.bytes;
}

}  // namespace

WaysOn::WaysOn(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
               const Progress& progress)
    : m_elimination(elimination), m_limits(limits), m_countsBytes(mostOf(elimination).bytes > limits.bytes) {
  m_hasAll = findAll(restriction, progress);
}

bool WaysOn::findAll(const Restriction& restriction, const Progress& progress) {
  if (m_countsBytes) m_weights = multiplierFor(m_elimination, m_limits.bytes, restriction, progress);
  const auto time = forward(m_elimination, kTime, restriction, progress),
             bytes = forward(m_elimination, kBytes, restriction, progress),
             weighted = forward(m_elimination, m_weights, restriction, progress);
  if (time.empty() || bytes.empty() || weighted.empty()) return false;
  const std::size_t places = m_elimination.places();
  m_ways.resize(m_elimination.offsets.back());
  for (std::size_t at = m_elimination.offsets[places]; at < m_ways.size(); ++at) m_ways[at].emplace_back();
  std::size_t count = 0;
  for (std::size_t place = places; place-- > 0;) {
    if (progress.cancelled()) return false;
    const auto* mask = restriction.at(place);
    for (std::uint32_t state = 0; state < m_elimination.level(place).entry->count; ++state) {
      const std::size_t at = m_elimination.offsets[place] + state;
      if (time[at] >= kUnreachable) continue;
      m_ways[at] = waysFrom(place, state, mask, {time[at], m_countsBytes ? bytes[at] : 0}, weighted[at]);
      count += m_ways[at].size();
      if (count > kMostWays) return false;
    }
  }
  return true;
}

WaysOn::Ways WaysOn::waysFrom(std::size_t place, std::uint32_t state, const Restriction::Mask* mask,
                              const PathCost& reached, Wide weighted) const {
  const Level& level = m_elimination.level(place);
  const Wide most = m_weights.of(m_limits);
  Ways ways;
  for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
    if (!isLeft(mask, t)) continue;
    const Transition& transition = level.transitions[t];
    for (const PathCost& after : m_ways[m_elimination.offsets[place + 1] + transition.to]) {
      const PathCost way = spent(after, transition);
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

std::optional<Wide> WaysOn::least(std::size_t place, std::uint32_t state, const PathCost& spent) const {
  const Ways& ways = m_ways[m_elimination.offsets[place] + state];
  const auto first = std::lower_bound(ways.begin(), ways.end(), m_limits.bytes - spent.bytes,
                                      [](const PathCost& way, Wide room) { return way.bytes > room; });
  if (first == ways.end() || spent.femtoseconds + first->femtoseconds > m_limits.femtoseconds) return std::nullopt;
  return first->femtoseconds;
}

}  // namespace cleave::solve::optimal
