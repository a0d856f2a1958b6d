#include "solve/optimal/bounds.h"

#include <algorithm>
#include <limits>

namespace cleave::solve::optimal {
namespace {

/// Weighted sums stay below kUnreachable, even the sum of two.
constexpr Wide kMostWeighted = Wide(1) << 118;

bool fits(Wide weight, Wide most) { return most == 0 || weight <= kMostWeighted / most; }

}  // namespace

Weights Weights::between(const PathCost& over, const PathCost& within, const PathCost& most) {
  Weights weights{over.bytes - within.bytes, within.femtoseconds - over.femtoseconds};
  while (!fits(weights.time, most.femtoseconds) || !fits(weights.bytes, most.bytes)) {
    weights.time >>= 1;
    weights.bytes >>= 1;
  }
  weights.time = std::max<Wide>(1, weights.time);
  return weights;
}

PathCost mostOf(const Elimination& elimination) {
  std::vector<PathCost> mostOfLevel;
  for (const auto& level : elimination.levels) {
    PathCost most;
    for (const Transition& transition : level->transitions) {
      most.femtoseconds = std::max(most.femtoseconds, transition.femtoseconds);
      most.bytes = std::max<Wide>(most.bytes, transition.bytes);
    }
    mostOfLevel.push_back(most);
  }
  PathCost most;
  for (const std::uint32_t level : elimination.levelAt) {
    most.femtoseconds += mostOfLevel[level].femtoseconds;
    most.bytes += mostOfLevel[level].bytes;
  }
  return most;
}

PathCost costOf(const Elimination& elimination, const Path& path) {
  PathCost cost{elimination.fixedFs, elimination.fixedBytes};
  for (std::size_t place = 0; place < path.size(); ++place) {
    const Transition& chosen = elimination.level(place).transitions[path[place]];
    cost.femtoseconds += chosen.femtoseconds;
    cost.bytes += chosen.bytes;
  }
  return cost;
}

std::vector<Wide> backward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                           const Progress& progress) {
  std::vector<Wide> toGo(elimination.offsets.back(), kUnreachable);
  const std::size_t places = elimination.places();
  std::fill(toGo.begin() + static_cast<std::ptrdiff_t>(elimination.offsets[places]), toGo.end(), Wide(0));
  for (std::size_t place = places; place-- > 0;) {
    if (progress.cancelled()) return {};
    const Level& level = elimination.level(place);
    const Wide* after = toGo.data() + elimination.offsets[place + 1];
    Wide* here = toGo.data() + elimination.offsets[place];
    const auto* mask = restriction.at(place);
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      Wide best = kUnreachable;
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        if (!isLeft(mask, t)) continue;
        const Wide cost = weights.of(transition.femtoseconds, transition.bytes) + after[transition.to];
        if (cost < best) best = cost;
      }
      here[state] = best;
    }
  }
  return toGo;
}

std::vector<Wide> forward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                          const Progress& progress) {
  std::vector<Wide> reached(elimination.offsets.back(), kUnreachable);
  reached.front() = 0;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    if (progress.cancelled()) return {};
    const Level& level = elimination.level(place);
    const auto* mask = restriction.at(place);
    const Wide* here = reached.data() + elimination.offsets[place];
    Wide* after = reached.data() + elimination.offsets[place + 1];
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        if (!isLeft(mask, t)) continue;
        after[transition.to] =
            std::min(after[transition.to], here[state] + weights.of(transition.femtoseconds, transition.bytes));
      }
    }
  }
  return reached;
}

std::optional<Path> pathAlong(const Elimination& elimination, Weights weights, const Restriction& restriction,
                              const std::vector<Wide>& toGo) {
  if (toGo.front() >= kUnreachable) return std::nullopt;
  Path path;
  path.reserve(elimination.places());
  std::uint32_t state = 0;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    const Level& level = elimination.level(place);
    const auto* mask = restriction.at(place);
    const Wide* after = toGo.data() + elimination.offsets[place + 1];
    const Wide wanted = toGo[elimination.offsets[place] + state];
    std::uint32_t chosen = level.begins[state];
    while (!isLeft(mask, chosen) ||
           weights.of(level.transitions[chosen].femtoseconds, level.transitions[chosen].bytes) +
                   after[level.transitions[chosen].to] !=
               wanted) {
      ++chosen;
      CLEAVE_CHECK(chosen < level.begins[state + 1], "a transition has the cost found");
    }
    path.push_back(chosen);
    state = level.transitions[chosen].to;
  }
  return path;
}

Weights multiplierFor(const Elimination& elimination, Wide limitBytes, const Restriction& restriction,
                      const Progress& progress) {
  constexpr int kMostMultipliers = 64;
  const auto along = [&](Weights weights) -> std::optional<std::pair<Wide, PathCost>> {
    const auto toGo = backward(elimination, weights, restriction, progress);
    const auto path = toGo.empty() ? std::nullopt : pathAlong(elimination, weights, restriction, toGo);
    if (!path) return std::nullopt;
    const PathCost cost = costOf(elimination, *path);
    return std::pair(toGo.front(),
                     PathCost{cost.femtoseconds - elimination.fixedFs, cost.bytes - elimination.fixedBytes});
  };
  const auto fastest = along(kTime), smallest = along(kBytes);
  if (!fastest || !smallest || fastest->second.bytes <= limitBytes || smallest->second.bytes > limitBytes) return kTime;
  const PathCost most = mostOf(elimination);
  PathCost over = fastest->second, within = smallest->second;
  Weights weights = kTime;
  for (int i = 0; i < kMostMultipliers; ++i) {
    weights = Weights::between(over, within, most);
    const auto next = along(weights);
    if (!next || next->first >= std::min(weights.of(over), weights.of(within))) break;
    (next->second.bytes <= limitBytes ? within : over) = next->second;
  }
  return weights;
}

std::int64_t leastPeak(const Elimination& elimination) {
  std::vector<std::int64_t> after(elimination.statesBefore(elimination.places()), 0);
  for (std::size_t place = elimination.places(); place-- > 0;) {
    const Level& level = elimination.level(place);
    std::vector<std::int64_t> here(level.entry->count, std::numeric_limits<std::int64_t>::max());
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        here[state] = std::min(here[state], std::max(transition.transientBytes, after[transition.to]));
      }
    }
    after = std::move(here);
  }
  return after.front();
}

}  // namespace cleave::solve::optimal
