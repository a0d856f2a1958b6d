#pragma once
/// The fastest path whose bytes stay within a limit, the leanest one whose time does, both exactly, and the whole trade
/// of time against bytes.
///
/// Labels (time, bytes) grow along the chain; of two at one state the one that is worse in both is dropped. What cannot
/// become better than a known plan is cut by lower bounds that a Lagrange multiplier gives: least time + λ·bytes to the
/// end (Handler and Zang, "A Dual Algorithm for the Constrained Shortest Path Problem", 1980).
#include "solve/optimal/chain.h"

namespace cleave::solve::optimal {

struct Bounded {
  enum class Ending { Found, TooMuch, Stopped } ending = Ending::Stopped;
  Path path;             ///< Found: the best; TooMuch: the one nearest to the limit; empty: no path at all
  PathCost cost;         ///< of `path`, fixed steps counted
  bool isProved = true;  ///< Found: false when labels ran out of room
  Wide lowerBound = 0;   ///< of what is least, for any path within the limit; fixed steps counted
};

/// The fastest. `limitBytes`: of all additive bytes, fixed steps counted.
Bounded fastestWithin(const Elimination& elimination, const Chain& chain, Wide limitBytes, const Progress& progress);
/// The one with the fewest additive bytes. `limitFs`: fixed steps counted.
Bounded leanestWithin(const Elimination& elimination, const Chain& chain, Wide limitFs, const Progress& progress);

struct FrontOfPaths {
  std::size_t points = 0;
  bool isExact = true;  ///< false: thinned on the way
};
/// The paths that no other beats in both time and additive bytes, by rising time; `visit` sees at most so many of them,
/// evenly chosen, the first and the last among them. nullopt when cancelled.
std::optional<FrontOfPaths> frontOf(const Chain& chain, std::size_t most, const Progress& progress,
                                    const std::function<void(const Path&)>& visit);

}  // namespace cleave::solve::optimal
