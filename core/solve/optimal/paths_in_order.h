#pragma once
/// All paths within a byte limit by rising time, including those that are not Pareto-optimal.
///
/// The search is best first over the places with exact lower bounds (Lawler, "A Procedure for Computing the K Best
/// Solutions to Discrete Optimization Problems", 1972). A path is followed to its end along the lowest bound, and its
/// alternatives go into a heap.
#include "solve/optimal/bounds.h"

namespace cleave::solve::optimal {

class PathsInOrder {
 public:
  /// `limitBytes`: additive bytes, fixed steps included. `cutFs`: only paths faster than this are listed.
  PathsInOrder(const Elimination& elimination, Wide limitBytes, Wide cutFs, const Restriction& restriction,
               const Progress& progress);

  enum class State { Found, Exhausted, OutOfRoom, Stopped };
  /// Also returns OutOfRoom after `mostWork` transitions.
  State next(std::uint64_t mostWork = std::numeric_limits<std::uint64_t>::max());
  const Path& path() const { return m_path; }
  /// Lower bound of the time of every later path, fixed steps included.
  Wide lowerBoundFs() const { return m_lowerBound + m_elimination.fixedFs; }

 private:
  /// The part of a path after it leaves another path.
  struct Walk {
    std::uint32_t parent = 0;
    std::size_t place = 0;  ///< place of the first transition
    Path transitions;
  };
  /// A path in the heap: the path of `walk` up to `place`, then `transition`.
  struct Waiting {
    Wide bound = 0;
    std::uint64_t number = 0;
    std::uint32_t walk = 0;
    std::uint32_t transition = 0;
    std::size_t place = 0;
    Wide femtoseconds = 0, bytes = 0;  ///< of the path with the transition
  };
  static bool isWorse(const Waiting& a, const Waiting& b);
  std::optional<Wide> boundOf(std::size_t place, std::uint32_t state, Wide fs, Wide bytes) const;
  /// Follows `start` as long as no path in the heap is better; true at the end of the path.
  bool follow(const Waiting& start);
  void composePath(std::uint32_t walk);

  const Elimination& m_elimination;
  const Restriction m_restriction;
  const Progress& m_progress;
  const PathCost m_most;
  Wide m_limit = 0, m_cut = 0;
  std::vector<Wide> m_time, m_bytes;
  Weights m_weights;
  std::vector<Wide> m_weighted;  ///< empty if the limit does not bind
  std::vector<Waiting> m_heap;
  std::vector<Walk> m_walks;
  std::uint64_t m_number = 0;
  std::size_t m_walked = 0;
  std::uint64_t m_work = 0;  ///< number of transitions so far
  Wide m_lowerBound = 0;
  Path m_path;
};

}  // namespace cleave::solve::optimal
