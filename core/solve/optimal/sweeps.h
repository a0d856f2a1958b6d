#pragma once
/// Exact bounds by one pass over all places: the least that the rest of a plan can cost from each state.
#include "solve/optimal/elimination.h"

namespace cleave::solve::optimal {

/// Weighted sums of femtoseconds and bytes: products of two 64-bit figures, so twice as wide.
__extension__ using Wide = __int128;

/// A sum of nothing reachable; two of them may be added.
template <class T>
inline constexpr T kUnreachable = static_cast<T>(std::numeric_limits<std::int64_t>::max() / 4);
template <>
inline constexpr Wide kUnreachable<Wide> = Wide(1) << 125;

/// What is added up: time · femtoseconds + bytes · bytes.
template <class T>
struct Weights {
  T time = 1, bytes = 0;
  T of(std::int64_t femtoseconds, std::int64_t heldBytes) const { return time * femtoseconds + bytes * heldBytes; }
};

/// Leaves only some transitions at one place.
struct Restriction {
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::size_t place = kNowhere;
  std::vector<bool> isAllowed;  ///< by transition of that place's level
  bool allows(std::size_t at, std::uint32_t transition) const { return at != place || isAllowed[transition]; }
};

/// One transition for each place.
using Path = std::vector<std::uint32_t>;
struct PathCost {
  std::int64_t femtoseconds = 0, bytes = 0;
};
/// With what fixed steps cost.
PathCost costOf(const Elimination& elimination, const Path& path);

/// Least weight from each state to the end; at Elimination::offsets. Fixed steps are not counted. Empty when cancelled.
template <class T>
std::vector<T> backward(const Elimination& elimination, Weights<T> weights, const Restriction& restriction,
                        const Progress& progress);
/// Least femtoseconds from the start to each state.
std::vector<std::int64_t> forward(const Elimination& elimination, const Progress& progress);

/// The path that `toGo`, made by `backward` with the same arguments, is the weight of: of equal ones the first in candidate
/// order, first place first. nullopt where none leads to the end.
template <class T>
std::optional<Path> pathAlong(const Elimination& elimination, Weights<T> weights, const Restriction& restriction, const std::vector<T>& toGo);

}  // namespace cleave::solve::optimal
