#pragma once
/// Exact bounds within a limit of time and one of bytes: for each state the ways on to the end that no other beats in
/// both, less those that no way to the state leaves room for.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

class WaysOn {
 public:
  /// `limits`: of places alone. Bytes that nothing can have too many of are not counted.
  WaysOn(const Elimination& elimination, const PathCost& limits, const Restriction& restriction,
         const Progress& progress);

  bool hasAll() const { return m_hasAll; }  ///< false: there are too many, or it was cancelled
  /// After `spent` on the way to a state, the least time to the end within the limits; nullopt: none is.
  std::optional<Wide> least(std::size_t place, std::uint32_t state, const PathCost& spent) const;
  /// What a transition adds to what is spent.
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
