#include "solve/optimal/signatures_in_order.h"

namespace cleave::solve::optimal {
namespace {

constexpr std::size_t kMostWaitingSignatures = 2'000'000;  // 48 bytes each
constexpr std::size_t kMostWalkedSignatures = 50'000'000;  // 4 bytes each

/// Allows only transitions that alone need less than `peakLimit`.
Restriction below(const Elimination& elimination, std::int64_t peakLimit) {
  std::vector<std::shared_ptr<const Restriction::Mask>> masks;
  for (const auto& level : elimination.levels) {
    Restriction::Mask mask;
    for (const Transition& transition : level->transitions) mask.push_back(transition.transientBytes < peakLimit);
    const bool isAll = std::all_of(mask.begin(), mask.end(), [](bool isLeft) { return isLeft; });
    masks.push_back(isAll ? nullptr : std::make_shared<const Restriction::Mask>(std::move(mask)));
  }
  Restriction restriction;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    if (const auto& mask = masks[elimination.levelAt[place]]) restriction.add(place, mask);
  }
  return restriction;
}

}  // namespace

SignaturesInOrder::SignaturesInOrder(const Elimination& elimination, const Signatures& signatures, const Limits& limits,
                                     const Progress& progress)
    : m_elimination(elimination),
      m_signatures(signatures),
      m_progress(progress),
      m_limits{limits.path.femtoseconds - elimination.fixedFs, limits.path.bytes - elimination.fixedBytes},
      m_restriction(below(elimination, limits.peak)) {
  const PathCost most = mostOf(elimination);
  const auto time = backward(elimination, kTime, m_restriction, progress),
             bytes = backward(elimination, kBytes, m_restriction, progress);
  if (time.empty() || bytes.empty() || time.front() >= kUnreachable || bytes.front() > m_limits.bytes) return;
  m_least = time.front();
  m_isCut = most.bytes > m_limits.bytes && most.femtoseconds > m_limits.femtoseconds;
  if (!m_isCut) m_limits.femtoseconds = most.femtoseconds;
  if (m_least > m_limits.femtoseconds) return;
  m_ways.emplace(elimination, m_limits, m_restriction, progress);
  if (!m_ways->hasAll()) return;
  m_walks.emplace_back();
  if (const auto bound = boundOf(0, 0, {})) pushToHeap({*bound, m_number++, 0, 0, std::nullopt});
}

Wide SignaturesInOrder::lowerBoundFs() const {
  Wide bound = m_forgotten;
  if (!m_heap.empty()) bound = m_heap.front().bound;
  if (m_heap.empty() && m_isCut) bound = std::max(m_least, m_limits.femtoseconds + 1);
  return bound >= kUnreachable ? kUnreachable : bound + m_elimination.fixedFs;
}

std::optional<Wide> SignaturesInOrder::boundOf(std::size_t place, std::uint32_t state, const PathCost& spent) const {
  const auto least = m_ways->least(place, state, spent);
  return least ? std::optional(spent.femtoseconds + *least) : std::nullopt;
}

bool SignaturesInOrder::isWorse(const Waiting& a, const Waiting& b) {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.length != b.length) return a.length < b.length;
  return a.number > b.number;
}

/// Drops the worse half of the heap if it is full.
void SignaturesInOrder::pushToHeap(const Waiting& waiting) {
  if (waiting.bound >= m_forgotten) return;
  m_heap.push_back(waiting);
  std::push_heap(m_heap.begin(), m_heap.end(), isWorse);
  if (m_heap.size() <= kMostWaitingSignatures) return;
  const auto middle = m_heap.begin() + kMostWaitingSignatures / 2;
  std::nth_element(m_heap.begin(), middle, m_heap.end(), [](const auto& a, const auto& b) { return isWorse(b, a); });
  m_forgotten = std::min(m_forgotten, middle->bound);
  m_heap.erase(middle, m_heap.end());
  std::make_heap(m_heap.begin(), m_heap.end(), isWorse);
}

SignaturesInOrder::State SignaturesInOrder::next() {
  while (!m_heap.empty()) {
    if (m_progress.cancelled()) return State::Stopped;
    if (m_walked > kMostWalkedSignatures) return State::OutOfRoom;
    std::pop_heap(m_heap.begin(), m_heap.end(), isWorse);
    const Waiting start = m_heap.back();
    m_heap.pop_back();
    if (follow(start)) return State::Found;
  }
  if (m_progress.cancelled()) return State::Stopped;
  const bool isOutOfRoom = m_forgotten < kUnreachable || (m_ways && !m_ways->hasAll());
  return isOutOfRoom ? State::OutOfRoom : State::Exhausted;
}

template <class Visit>
void SignaturesInOrder::forEachWayOn(std::size_t place, const std::vector<Reached>& reached, Visit visit) const {
  const Level& level = m_elimination.level(place);
  const auto* mask = m_restriction.at(place);
  for (const Reached& from : reached) {
    for (std::uint32_t t = level.begins[from.state]; t < level.begins[from.state + 1]; ++t) {
      if (!isLeft(mask, t)) continue;
      visit(t, m_ways->spent(from.spent, level.transitions[t]));
    }
  }
}

std::vector<SignaturesInOrder::Reached> SignaturesInOrder::reachedAfter(std::size_t place,
                                                                        const std::vector<Reached>& reached,
                                                                        std::optional<std::uint32_t> label) {
  const Level& level = m_elimination.level(place);
  const auto& labels = m_signatures.labelsAt(place);
  m_byState.resize(std::max<std::size_t>(m_byState.size(), level.exit->count));
  std::vector<std::uint32_t> states;
  forEachWayOn(place, reached, [&](std::uint32_t t, const PathCost& spent) {
    const std::uint32_t to = level.transitions[t].to;
    if ((label && labels[t] != *label) || !m_ways->least(place + 1, to, spent)) return;
    auto& ways = m_byState[to];
    const auto beats = [](const PathCost& a, const PathCost& b) {
      return a.femtoseconds <= b.femtoseconds && a.bytes <= b.bytes;
    };
    if (std::any_of(ways.begin(), ways.end(), [&](const PathCost& way) { return beats(way, spent); })) return;
    if (ways.empty()) states.push_back(to);
    std::erase_if(ways, [&](const PathCost& way) { return beats(spent, way); });
    ways.push_back(spent);
  });
  std::vector<Reached> next;
  for (const std::uint32_t state : states) {
    for (const PathCost& way : m_byState[state]) next.push_back({state, way});
    m_byState[state].clear();
  }
  return next;
}

std::optional<std::uint32_t> SignaturesInOrder::labelAt(std::size_t place, const std::vector<Reached>& reached,
                                                        std::uint32_t length) {
  const Level& level = m_elimination.level(place);
  const auto& labels = m_signatures.labelsAt(place);
  std::vector<Wide> bounds(m_signatures.countAt(place), kUnreachable);
  forEachWayOn(place, reached, [&](std::uint32_t t, const PathCost& spent) {
    const auto bound = boundOf(place + 1, level.transitions[t].to, spent);
    if (bound) bounds[labels[t]] = std::min(bounds[labels[t]], *bound);
  });
  const auto best = std::min_element(bounds.begin(), bounds.end());
  if (*best >= kUnreachable) return std::nullopt;
  const auto walk = static_cast<std::uint32_t>(m_walks.size());
  const bool isBest = m_heap.empty() || *best <= m_heap.front().bound;
  for (std::uint32_t label = 0; label < bounds.size(); ++label) {
    const bool isChosen = isBest && label == static_cast<std::uint32_t>(best - bounds.begin());
    if (!isChosen && bounds[label] < kUnreachable) pushToHeap({bounds[label], m_number++, walk, length, label});
  }
  if (!isBest) return std::nullopt;
  return static_cast<std::uint32_t>(best - bounds.begin());
}

bool SignaturesInOrder::follow(const Waiting& start) {
  Signature signature(m_walks[start.walk].begin(), m_walks[start.walk].begin() + start.length);
  if (start.label) signature.push_back(*start.label);
  std::vector<Reached> reached{{}};
  std::uint32_t length = 0;
  bool isWhole = true;
  for (std::size_t place = 0; place < m_elimination.places(); ++place) {
    std::optional<std::uint32_t> label;
    if (m_signatures.countAt(place) > 1) {
      if (length == signature.size()) {
        label = labelAt(place, reached, length);
        isWhole = label.has_value();
        if (!isWhole) break;
        signature.push_back(*label);
      }
      label = signature[length++];
    }
    reached = reachedAfter(place, reached, label);
  }
  m_walked += signature.size();
  m_walks.push_back(std::move(signature));
  return isWhole;
}

}  // namespace cleave::solve::optimal
