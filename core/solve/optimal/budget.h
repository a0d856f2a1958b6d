#pragma once
/// Exact searches for the fastest path within a byte limit and for the path with the fewest bytes within a time limit,
/// and the Pareto front of time and bytes.
///
/// Labels (time, bytes) grow along the chain. At each state, a label that is worse in both than another is dropped.
/// Lower bounds with a Lagrange multiplier (least time + λ·bytes to the end) cut labels that cannot beat a known plan
/// (Handler and Zang, "A Dual Algorithm for the Constrained Shortest Path Problem", 1980).
#include "solve/optimal/chain.h"

namespace cleave::solve::optimal {

struct Bounded {
  enum class Ending { Found, OverLimit, Stopped } ending = Ending::Stopped;
  Path path;             ///< Found: the best path; OverLimit: the path nearest to the limit, or empty without a path
  PathCost cost;         ///< of `path`, fixed steps included
  bool isProved = true;  ///< Found: false if the search reached its label limit
  Wide lowerBound = 0;   ///< lower bound for every path within the limit, fixed steps included
};

/// The fastest path. `limitBytes`: limit of additive bytes, fixed steps included.
Bounded fastestWithin(const Elimination& elimination, const Chain& chain, Wide limitBytes, const Progress& progress);
/// The path with the fewest additive bytes. `limitFs`: fixed steps included.
Bounded smallestWithin(const Elimination& elimination, const Chain& chain, Wide limitFs, const Progress& progress);

struct FrontSize {
  std::size_t points = 0;
  bool isExact = true;  ///< false if the front was thinned
};
/// The Pareto front of time and additive bytes. `visit` gets at most `most` of its paths by rising time, evenly chosen,
/// with the first and the last. nullopt if cancelled.
std::optional<FrontSize> frontOf(const Chain& chain, std::size_t most, const Progress& progress,
                                 const std::function<void(const Path&)>& visit);

}  // namespace cleave::solve::optimal
