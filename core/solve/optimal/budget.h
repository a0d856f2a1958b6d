#pragma once
/// The cheapest path whose bytes stay within a limit, exactly, and the whole trade of time against bytes.
///
/// Labels (time, bytes) grow along the chain; of two at one state the one that is worse in both is dropped. What cannot
/// become better than a known plan is cut by lower bounds that a Lagrange multiplier gives: least time + λ·bytes to the end
/// (Handler and Zang, "A Dual Algorithm for the Constrained Shortest Path Problem", 1980).
#include "solve/optimal/chain.h"

namespace cleave::solve::optimal {

struct Bounded {
  enum class Outcome { Found, TooMuch, Stopped } outcome = Outcome::Stopped;
  Path path;                       ///< Found: the cheapest; TooMuch: the one with the fewest bytes; empty: no path at all
  PathCost cost;                   ///< of `path`, fixed steps counted
  bool isProved = true;            ///< Found: false when labels ran out of room
  std::int64_t lowerBoundFs = 0;   ///< of any path within the limit, fixed steps counted
};

/// `limitBytes`: of all additive bytes, fixed steps counted.
Bounded cheapestWithin(const Elimination& elimination, const Chain& chain, std::int64_t limitBytes, const Progress& progress);

struct FrontOfPaths {
  std::vector<PathCost> points;   ///< by rising time, fixed steps counted
  bool isExact = true;
  double worstGap = 0;            ///< relative to the fastest
};
/// At most some thousands of points. nullopt when cancelled.
std::optional<FrontOfPaths> frontOf(const Elimination& elimination, const Chain& chain, const Progress& progress);

}  // namespace cleave::solve::optimal
