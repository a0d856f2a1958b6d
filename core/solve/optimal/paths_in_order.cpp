#include "solve/optimal/paths_in_order.h"

#include <algorithm>

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostWaitingPaths = 2'000'000;  // 96 bytes each
constexpr std::size_t kMostWalkedPaths = 20'000'000;  // 4 bytes each
constexpr std::uint32_t kRoot = std::numeric_limits<std::uint32_t>::max();

}  // namespace

PathsInOrder::PathsInOrder(const Elimination& elimination, Wide limitBytes, Wide cutFs, const Restriction& restriction,
                           const Progress& progress)
    : m_elimination(elimination),
      m_restriction(restriction),
      m_progress(progress),
      m_most(mostOf(elimination)),
      m_limit(std::min<Wide>(limitBytes - elimination.fixedBytes, m_most.bytes)),
      m_cut(std::min<Wide>(cutFs - elimination.fixedFs, m_most.femtoseconds + 1)),
      m_time(backward(elimination, kTime, restriction, progress)),
      m_bytes(backward(elimination, kBytes, restriction, progress)) {
  if (m_time.empty() || m_bytes.empty()) return;
  if (m_time.front() >= kUnreachable || m_bytes.front() > m_limit) return;
  m_weights = multiplierFor(elimination, m_limit, restriction, progress);
  if (m_weights.bytes > 0) m_weighted = backward(elimination, m_weights, restriction, progress);
  m_lowerBound = boundOf(0, 0, 0, 0).value_or(m_cut);
  if (m_lowerBound < m_cut) m_heap.push_back({m_lowerBound, m_number++, kRoot, 0, 0, 0, 0});
}

std::optional<Wide> PathsInOrder::boundOf(std::size_t place, std::uint32_t state, Wide fs, Wide bytes) const {
  const std::size_t at = m_elimination.offsets[place] + state;
  if (bytes + m_bytes[at] > m_limit) return std::nullopt;
  const Wide bound = fs + m_time[at];
  if (m_weighted.empty() || bound >= m_cut) return bound;
  const Wide weighted = m_weights.of(fs, bytes) + m_weighted[at] - m_weights.bytes * m_limit;
  if (weighted >= m_weights.time * m_cut) return m_cut;
  if (weighted <= m_weights.time * bound) return bound;
  return (weighted + m_weights.time - 1) / m_weights.time;
}

bool PathsInOrder::isWorse(const Waiting& a, const Waiting& b) {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.place != b.place) return a.place < b.place;
  return a.number > b.number;
}

PathsInOrder::State PathsInOrder::next(std::uint64_t mostWork) {
  while (!m_heap.empty()) {
    if (m_progress.cancelled()) return State::Stopped;
    if (m_heap.size() > kMostWaitingPaths || m_walked > kMostWalkedPaths || m_work >= mostWork) return State::OutOfRoom;
    std::pop_heap(m_heap.begin(), m_heap.end(), isWorse);
    const Waiting start = m_heap.back();
    m_heap.pop_back();
    m_lowerBound = std::max(m_lowerBound, start.bound);
    if (!follow(start)) continue;
    composePath(static_cast<std::uint32_t>(m_walks.size()) - 1);
    return State::Found;
  }
  if (m_progress.cancelled()) return State::Stopped;
  m_lowerBound = m_cut;
  return State::Exhausted;
}

bool PathsInOrder::follow(const Waiting& start) {
  const auto id = static_cast<std::uint32_t>(m_walks.size());
  m_walks.push_back({start.walk, start.place, {}});
  Walk& walk = m_walks.back();
  std::size_t place = start.place;
  std::uint32_t state = 0;
  Wide fs = start.femtoseconds, bytes = start.bytes;
  if (start.walk != kRoot) {
    walk.transitions.push_back(start.transition);
    state = m_elimination.level(place++).transitions[start.transition].to;
  }
  for (; place < m_elimination.places(); ++place) {
    const Level& level = m_elimination.level(place);
    const auto* mask = m_restriction.at(place);
    std::optional<Waiting> best;
    const auto pushToHeap = [&](const Waiting& waiting) {
      m_heap.push_back(waiting);
      std::push_heap(m_heap.begin(), m_heap.end(), isWorse);
    };
    m_work += level.begins[state + 1] - level.begins[state];
    for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
      if (!isLeft(mask, t)) continue;
      const Transition& transition = level.transitions[t];
      const Wide newFs = fs + transition.femtoseconds, newBytes = bytes + transition.bytes;
      const auto bound = boundOf(place + 1, transition.to, newFs, newBytes);
      if (!bound || *bound >= m_cut) continue;
      const Waiting way{*bound, m_number++, id, t, place, newFs, newBytes};
      if (!best || way.bound < best->bound) {
        if (best) pushToHeap(*best);
        best = way;
      } else {
        pushToHeap(way);
      }
    }
    if (!best) return false;
    if (!m_heap.empty() && best->bound > m_heap.front().bound) {
      pushToHeap(*best);
      return false;
    }
    walk.transitions.push_back(best->transition);
    ++m_walked;
    fs = best->femtoseconds;
    bytes = best->bytes;
    state = level.transitions[best->transition].to;
  }
  return true;
}

void PathsInOrder::composePath(std::uint32_t walk) {
  m_path.assign(m_elimination.places(), 0);
  std::size_t end = m_path.size();
  for (std::uint32_t id = walk; id != kRoot; id = m_walks[id].parent) {
    const Walk& part = m_walks[id];
    for (std::size_t i = 0; i < part.transitions.size() && part.place + i < end; ++i)
      m_path[part.place + i] = part.transitions[i];
    end = std::min(end, part.place);
  }
}

}  // namespace cleave::solve::optimal
