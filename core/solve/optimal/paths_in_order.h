#pragma once
/// All paths within a limit of bytes by rising time, one after the other, those that another beats in both included.
///
/// Best first over the places with exact lower bounds (Lawler, "A Procedure for Computing the K Best Solutions to
/// Discrete Optimization Problems", 1972): a path is followed to its end along the lowest bound, and what was left
/// aside on the way waits in a heap.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

class PathsInOrder {
 public:
  /// `limitBytes`: additive bytes, fixed steps counted. `cutFs`: paths that take as long, or longer, are left out.
  PathsInOrder(const Elimination& elimination, Wide limitBytes, Wide cutFs, const Restriction& restriction,
               const Progress& progress);

  enum class State { Found, Exhausted, OutOfRoom, Stopped };
  /// OutOfRoom also where `mostWork` transitions were looked at.
  State next(std::uint64_t mostWork = std::numeric_limits<std::uint64_t>::max());
  const Path& path() const { return m_path; }
  /// No path still to come is faster; fixed steps counted.
  Wide lowerBoundFs() const { return m_lowerBound + m_elimination.fixedFs; }

 private:
  /// The part of a path from where it leaves another one.
  struct Walk {
    std::uint32_t parent = 0;
    std::size_t place = 0;  ///< of the first of `transitions`
    Path transitions;
  };
  /// A path left aside: that of `walk` up to `place`, then `transition`.
  struct Waiting {
    Wide bound = 0;
    std::uint64_t number = 0;
    std::uint32_t walk = 0;
    std::uint32_t transition = 0;
    std::size_t place = 0;
    Wide femtoseconds = 0, bytes = 0;  ///< with the transition
  };
  static bool isWorse(const Waiting& a, const Waiting& b);
  std::optional<Wide> boundOf(std::size_t place, std::uint32_t state, Wide fs, Wide bytes) const;
  /// Follows `start` as long as nothing that waits is better; true when it came to the end.
  bool follow(const Waiting& start);
  void composePath(std::uint32_t walk);

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const Progress& m_progress;
  const PathCost m_most;
  Wide m_limit = 0, m_cut = 0;
  std::vector<Wide> m_time, m_bytes;
  Weights m_weights;
  std::vector<Wide> m_weighted;  ///< empty: the limit does not bind
  std::vector<Waiting> m_heap;
  std::vector<Walk> m_walks;
  std::uint64_t m_number = 0;
  std::size_t m_walked = 0;
  std::uint64_t m_work = 0;  ///< transitions looked at so far
  Wide m_lowerBound = 0;
  Path m_path;
};

}  // namespace cleave::solve::optimal
