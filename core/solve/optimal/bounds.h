#pragma once
/// Exact bounds from one pass over all places: for each state, the minimum cost of the rest of a plan.
#include "solve/optimal/elimination.h"

#include <algorithm>

namespace cleave::solve::optimal {

struct PathCost {
  Wide femtoseconds = 0, bytes = 0;
};

/// Weights of the sum time · femtoseconds + bytes · bytes.
struct Weights {
  Wide time = 1, bytes = 0;
  Wide of(Wide femtoseconds, Wide heldBytes) const { return time * femtoseconds + bytes * heldBytes; }
  Wide of(const PathCost& cost) const { return of(cost.femtoseconds, cost.bytes); }
  /// Weights with equal sums for both costs, as closely as 128 bits allow. No cost may exceed `most`.
  static Weights between(const PathCost& over, const PathCost& within, const PathCost& most);
};
inline constexpr Weights kTime{1, 0}, kBytes{0, 1};

/// Allows only some transitions at some places.
class Restriction {
 public:
  using Mask = std::vector<bool>;  ///< by transition of a place's level
  Restriction() = default;
  Restriction(std::size_t place, Mask isAllowed) { add(place, std::make_shared<const Mask>(std::move(isAllowed))); }
  /// Call it for places in ascending order. Equal places may share a mask.
  void add(std::size_t place, std::shared_ptr<const Mask> isAllowed) {
    m_masks.emplace_back(place, std::move(isAllowed));
  }
  std::size_t places() const { return m_masks.size(); }
  /// Null if all transitions are allowed.
  const Mask* at(std::size_t place) const {
    const auto found = from(place);
    return found != m_masks.end() && found->first == place ? found->second.get() : nullptr;
  }
  bool isWithin(std::size_t begin, std::size_t end) const {
    const auto found = from(begin);
    return found != m_masks.end() && found->first < end;
  }

 private:
  std::vector<std::pair<std::size_t, std::shared_ptr<const Mask>>>::const_iterator from(std::size_t place) const {
    return std::lower_bound(m_masks.begin(), m_masks.end(), place,
                            [](const auto& mask, std::size_t at) { return mask.first < at; });
  }
  std::vector<std::pair<std::size_t, std::shared_ptr<const Mask>>> m_masks;  ///< by ascending place
};
inline bool isLeft(const Restriction::Mask* mask, std::uint32_t transition) { return !mask || (*mask)[transition]; }

/// One transition for each place.
using Path = std::vector<std::uint32_t>;
/// Cost of a path, fixed steps included.
PathCost costOf(const Elimination& elimination, const Path& path);
/// An upper bound of the cost of every path, fixed steps not counted.
PathCost mostOf(const Elimination& elimination);

/// A lower bound of the transient peak of every plan, from the needs of single steps.
std::int64_t leastPeak(const Elimination& elimination);

/// Least weight from each state to the end, at Elimination::offsets. Fixed steps are not counted. Empty if cancelled.
std::vector<Wide> backward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                           const Progress& progress);
/// Least weight from the start to each state.
std::vector<Wide> forward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                          const Progress& progress);

/// The path of least weight. `toGo`: result of `backward` with the same arguments. Among equal paths it is the first in
/// candidate order, where the first place decides first. nullopt if no path leads to the end.
std::optional<Path> pathAlong(const Elimination& elimination, Weights weights, const Restriction& restriction,
                              const std::vector<Wide>& toGo);

/// The weights that give the highest lower bound on the time of paths within `limitBytes` (fixed steps not counted).
/// They are the slope of the lower convex hull of all paths at the limit. kTime if the limit does not bind, or if no
/// path is within it.
Weights multiplierFor(const Elimination& elimination, Wide limitBytes, const Restriction& restriction,
                      const Progress& progress);

}  // namespace cleave::solve::optimal
