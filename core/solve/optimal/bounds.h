#pragma once
/// Exact bounds by one pass over all places: the least that the rest of a plan can cost from each state.
#include "solve/optimal/elimination.h"

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

/// Leaves only some transitions at one place.
struct Restriction {
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::size_t place = kNowhere;
  std::vector<bool> isAllowed;  ///< by transition of that place's level
  bool allows(std::size_t at, std::uint32_t transition) const { return at != place || isAllowed[transition]; }
};

/// One transition for each place.
using Path = std::vector<std::uint32_t>;
/// With what fixed steps cost.
PathCost costOf(const Elimination& elimination, const Path& path);
/// No path costs more; fixed steps not counted.
PathCost mostOf(const Elimination& elimination);

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
