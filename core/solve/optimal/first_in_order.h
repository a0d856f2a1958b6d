#pragma once
/// Of the paths within a limit of time and one of bytes, the first in candidate order, the first place deciding first;
/// then the second, and so on. What makes a tie under a budget fall as it does without one.
///
/// For each state the ways on to the end that no other beats in both time and bytes are found backwards, less those
/// that no way to the state leaves room for; forwards, each place then takes the first candidate behind which there is
/// one that fits.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

class FirstInOrder {
 public:
  /// `limits`: fixed steps counted; nothing may be faster within the bytes.
  FirstInOrder(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
               const Progress& progress);
  /// The next path; null when there is none, when there are too many ways to tell, or when cancelled.
  const Path* next();

 private:
  using Ways = std::vector<PathCost>;  ///< by rising time and falling bytes
  struct Step {
    std::uint32_t state = 0, transition = 0;
    PathCost before;
  };
  bool findWays(const Progress& progress);
  Ways waysOn(std::size_t place, std::uint32_t state, const PathCost& reached, Wide weighted) const;
  bool fits(std::size_t place, std::uint32_t state, const PathCost& spent) const;
  /// Goes on from the last step, which takes its transition or a later one.
  bool complete();

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const PathCost m_limits;  ///< of places alone
  Weights m_weights;
  std::vector<Ways> m_ways;  ///< at Elimination::offsets
  bool m_hasWays = false;
  std::vector<Step> m_steps;  ///< of the path found last
  Path m_path;
};

}  // namespace cleave::solve::optimal
