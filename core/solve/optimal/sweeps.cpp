#include "solve/optimal/sweeps.h"

namespace cleave::solve::optimal {

PathCost costOf(const Elimination& elimination, const Path& path) {
  PathCost cost{elimination.fixedFs, elimination.fixedBytes};
  for (std::size_t place = 0; place < path.size(); ++place) {
    const Transition& taken = elimination.level(place).transitions[path[place]];
    cost.femtoseconds += taken.femtoseconds;
    cost.bytes += taken.bytes;
  }
  return cost;
}

template <class T>
std::vector<T> backward(const Elimination& elimination, Weights<T> weights, const Restriction& restriction,
                        const Progress& progress) {
  std::vector<T> toGo(elimination.offsets.back(), kUnreachable<T>);
  const std::size_t places = elimination.places();
  std::fill(toGo.begin() + static_cast<std::ptrdiff_t>(elimination.offsets[places]), toGo.end(), T(0));
  for (std::size_t place = places; place-- > 0;) {
    if (progress.cancelled()) return {};
    const Level& level = elimination.level(place);
    const T* behind = toGo.data() + elimination.offsets[place + 1];
    T* here = toGo.data() + elimination.offsets[place];
    const bool isRestricted = place == restriction.place;
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      T best = kUnreachable<T>;
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        if (isRestricted && !restriction.isAllowed[t]) continue;
        const T cost = weights.of(transition.femtoseconds, transition.bytes) + behind[transition.to];
        if (cost < best) best = cost;
      }
      here[state] = best;
    }
  }
  return toGo;
}

std::vector<std::int64_t> forward(const Elimination& elimination, const Progress& progress) {
  std::vector<std::int64_t> reached(elimination.offsets.back(), kUnreachable<std::int64_t>);
  reached.front() = 0;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    if (progress.cancelled()) return {};
    const Level& level = elimination.level(place);
    const std::int64_t* here = reached.data() + elimination.offsets[place];
    std::int64_t* behind = reached.data() + elimination.offsets[place + 1];
    for (std::uint32_t state = 0; state < level.entry->count; ++state) {
      for (std::uint32_t t = level.begins[state]; t < level.begins[state + 1]; ++t) {
        const Transition& transition = level.transitions[t];
        behind[transition.to] = std::min(behind[transition.to], here[state] + transition.femtoseconds);
      }
    }
  }
  return reached;
}

template <class T>
std::optional<Path> pathAlong(const Elimination& elimination, Weights<T> weights, const Restriction& restriction, const std::vector<T>& toGo) {
  if (toGo.front() >= kUnreachable<T>) return std::nullopt;
  Path path;
  path.reserve(elimination.places());
  std::uint32_t state = 0;
  for (std::size_t place = 0; place < elimination.places(); ++place) {
    const Level& level = elimination.level(place);
    const T* behind = toGo.data() + elimination.offsets[place + 1];
    const T wanted = toGo[elimination.offsets[place] + state];
    std::uint32_t taken = level.begins[state];
    while (!restriction.allows(place, taken) ||
           weights.of(level.transitions[taken].femtoseconds, level.transitions[taken].bytes) +
                   behind[level.transitions[taken].to] != wanted) {
      ++taken;
      CLEAVE_CHECK(taken < level.begins[state + 1], "a transition for the cost that was found");
    }
    path.push_back(taken);
    state = level.transitions[taken].to;
  }
  return path;
}

template std::vector<std::int64_t> backward(const Elimination&, Weights<std::int64_t>, const Restriction&, const Progress&);
template std::vector<Wide> backward(const Elimination&, Weights<Wide>, const Restriction&, const Progress&);
template std::optional<Path> pathAlong(const Elimination&, Weights<std::int64_t>, const Restriction&, const std::vector<std::int64_t>&);
template std::optional<Path> pathAlong(const Elimination&, Weights<Wide>, const Restriction&, const std::vector<Wide>&);

}  // namespace cleave::solve::optimal
