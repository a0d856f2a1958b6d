#pragma once
/// Paths within a time limit and a byte limit in candidate order, where the first place decides first. With them, a
/// budget does not change how ties are broken.
///
/// Each place takes the first candidate from which a path within the limits leads to the end.
#include "solve/optimal/ways_on.h"

namespace cleave::solve::optimal {

class FirstInOrder {
 public:
  /// `limits`: fixed steps included. No path within the byte limit may be faster than the time limit.
  FirstInOrder(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
               const Progress& progress);
  /// The next path; null if there are no more paths, if there are too many ways, or if cancelled.
  const Path* next();

 private:
  struct Step {
    std::uint32_t state = 0, transition = 0;
    PathCost before;
  };
  /// Completes the path from the last step, with its transition or a later one.
  bool complete();

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const WaysOn m_ways;
  std::vector<Step> m_steps;  ///< of the path found last
  Path m_path;
};

}  // namespace cleave::solve::optimal
