#pragma once
/// Of the paths within a limit of time and one of bytes, the first in candidate order, the first place deciding first;
/// then the second, and so on. What makes a tie under a budget fall as it does without one.
///
/// Each place takes the first candidate behind which there is a way on that fits.
#include "solve/optimal/ways_on.h"

namespace cleave::solve::optimal {

class FirstInOrder {
 public:
  /// `limits`: fixed steps counted; nothing may be faster within the bytes.
  FirstInOrder(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
               const Progress& progress);
  /// The next path; null when there is none, when there are too many ways to tell, or when cancelled.
  const Path* next();

 private:
  struct Step {
    std::uint32_t state = 0, transition = 0;
    PathCost before;
  };
  /// Goes on from the last step, which takes its transition or a later one.
  bool complete();

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const WaysOn m_ways;
  std::vector<Step> m_steps;  ///< of the path found last
  Path m_path;
};

}  // namespace cleave::solve::optimal
