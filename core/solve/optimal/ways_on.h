#pragma once
/// Exact bounds within a time limit and a byte limit. For each state they have the Pareto-optimal ways to the end,
/// except those that exceed the limits after every way to the state.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

class WaysOn {
 public:
  /// `limits`: without fixed steps. Bytes are not counted if no path can exceed their limit.
  WaysOn(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
         const Progress& progress);

  bool hasAll() const { return m_hasAll; }  ///< false if there were too many ways, or if cancelled
  /// The least time from a state to the end within the limits, after `spent` on the way to it; nullopt if no way fits.
  std::optional<Wide> least(std::size_t place, std::uint32_t state, const PathCost& spent) const;
  /// The cost after a transition.
  PathCost spent(const PathCost& before, const Transition& transition) const {
    return {before.femtoseconds + transition.femtoseconds, m_countsBytes ? before.bytes + transition.bytes : 0};
  }

 private:
  using Ways = std::vector<PathCost>;  ///< by rising time and falling bytes
  bool findAll(const Restriction& restriction, const Progress& progress);
  Ways waysFrom(std::size_t place, std::uint32_t state, const Restriction::Mask* mask, const PathCost& reached,
                Wide weighted) const;

  const Elimination& m_elimination;
  const PathCost m_limits;
  const bool m_countsBytes;
  Weights m_weights;
  std::vector<Ways> m_ways;  ///< at Elimination::offsets
  bool m_hasAll = false;
};

}  // namespace cleave::solve::optimal
