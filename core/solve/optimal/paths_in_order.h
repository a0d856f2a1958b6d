#pragma once
/// All paths within a limit of bytes by rising time, one after the other, those that another beats in both included.
///
/// Best first over the places with exact lower bounds (Lawler, "A Procedure for Computing the K Best Solutions to Discrete
/// Optimization Problems", 1972): a path is followed to its end along the lowest bound, and what was left aside on the way
/// waits in a heap.
#include "solve/optimal/sweeps.h"

namespace cleave::solve::optimal {

class PathsInOrder {
 public:
  /// `limitBytes`: additive bytes, fixed steps counted. `cutFs`: paths that take as long, or longer, are left out.
  PathsInOrder(const Elimination& elimination, std::int64_t limitBytes, std::int64_t cutFs, const Restriction& restriction,
               const Progress& progress);

  enum class State { Found, Exhausted, OutOfRoom, Stopped };
  State next();
  const Path& path() const { return m_path; }
  /// No path still to come is faster; fixed steps counted.
  std::int64_t lowerBoundFs() const { return m_lowerBound + m_elimination.fixedFs; }

 private:
  /// The part of a path from where it leaves another one.
  struct Walk {
    std::uint32_t parent = 0;
    std::size_t place = 0;  ///< of the first of `transitions`
    Path transitions;
  };
  /// A path left aside: that of `walk` up to `place`, then `transition`.
  struct Waiting {
    std::int64_t bound = 0;
    std::uint64_t number = 0;
    std::uint32_t walk = 0;
    std::uint32_t transition = 0;
    std::size_t place = 0;
    std::int64_t femtoseconds = 0, bytes = 0;  ///< with the transition
  };
  static bool isWorse(const Waiting& a, const Waiting& b);
  void findMultiplier(const Restriction& restriction, const Progress& progress);
  std::optional<std::int64_t> boundOf(std::size_t place, std::uint32_t state, std::int64_t fs, std::int64_t bytes) const;
  /// Follows `start` as long as nothing that waits is better; true when it came to the end.
  bool follow(const Waiting& start);
  void composePath(std::uint32_t walk);

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const Progress& m_progress;
  std::int64_t m_limit = 0, m_cut = 0;
  std::vector<std::int64_t> m_time, m_bytes;
  Weights<Wide> m_weights;
  std::vector<Wide> m_weighted;   ///< empty: the limit does not bind
  std::vector<Waiting> m_heap;
  std::vector<Walk> m_walks;
  std::uint64_t m_number = 0;
  std::size_t m_walked = 0;
  std::int64_t m_lowerBound = 0;
  Path m_path;
};

}  // namespace cleave::solve::optimal
