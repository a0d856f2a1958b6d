#pragma once
/// Exact bounds by one pass over all places: the least that the rest of a plan can cost from each state.
#include "solve/optimal/elimination.h"

#include <algorithm>

namespace cleave::solve::optimal {

struct PathCost {
  Wide femtoseconds = 0, bytes = 0;
};

/// What is added up: time · femtoseconds + bytes · bytes.
struct Weights {
  Wide time = 1, bytes = 0;
  Wide of(Wide femtoseconds, Wide heldBytes) const { return time * femtoseconds + bytes * heldBytes; }
  Wide of(const PathCost& cost) const { return of(cost.femtoseconds, cost.bytes); }
  /// Both costs weigh the same, as nearly as 128 bits allow when nothing costs more than `most`.
  static Weights between(const PathCost& over, const PathCost& within, const PathCost& most);
};
inline constexpr Weights kTime{1, 0}, kBytes{0, 1};

/// Leaves only some transitions at some places.
class Restriction {
 public:
  using Mask = std::vector<bool>;  ///< by transition of a place's level
  Restriction() = default;
  Restriction(std::size_t place, Mask isAllowed) { add(place, std::make_shared<const Mask>(std::move(isAllowed))); }
  /// Places come in their order; equal ones may share a mask.
  void add(std::size_t place, std::shared_ptr<const Mask> isAllowed) {
    m_masks.emplace_back(place, std::move(isAllowed));
  }
  std::size_t places() const { return m_masks.size(); }
  /// Null: all are left.
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
  std::vector<std::pair<std::size_t, std::shared_ptr<const Mask>>> m_masks;  ///< by rising place
};
inline bool isLeft(const Restriction::Mask* mask, std::uint32_t transition) { return !mask || (*mask)[transition]; }

/// One transition for each place.
using Path = std::vector<std::uint32_t>;
/// With what fixed steps cost.
PathCost costOf(const Elimination& elimination, const Path& path);
/// No path costs more; fixed steps not counted.
PathCost mostOf(const Elimination& elimination);

/// The transient peak that every plan has at least: by what single steps need alone.
std::int64_t leastPeak(const Elimination& elimination);

/// Least weight from each state to the end; at Elimination::offsets. Fixed steps are not counted. Empty when cancelled.
std::vector<Wide> backward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                           const Progress& progress);
/// Least weight from the start to each state.
std::vector<Wide> forward(const Elimination& elimination, Weights weights, const Restriction& restriction,
                          const Progress& progress);

/// The path that `toGo`, made by `backward` with the same arguments, is the weight of: of equal ones the first in
/// candidate order, first place first. nullopt where none leads to the end.
std::optional<Path> pathAlong(const Elimination& elimination, Weights weights, const Restriction& restriction,
                              const std::vector<Wide>& toGo);

/// The weights whose bound is highest on the time of paths within so many bytes (fixed steps not counted): the slope of
/// the lower convex hull of all paths where it meets the limit. kTime where the limit does not bind, or no path is
/// within it.
Weights multiplierFor(const Elimination& elimination, Wide limitBytes, const Restriction& restriction,
                      const Progress& progress);

}  // namespace cleave::solve::optimal
