#pragma once
/// All signatures with a path within a time limit and a byte limit, ordered by the time of their fastest such path.
///
/// The search is best first over the labels of the places in their order. A prefix of a signature reaches a set of
/// states, each with its Pareto-optimal ways. That is the determinised elimination, computed on demand (Mohri and
/// Riley, "An Efficient Algorithm for the n-Best-Strings Problem", 2002). The bounds are exact (ways_on.h), so each
/// signature needs two passes over the places.
#include "solve/optimal/signatures.h"
#include "solve/optimal/ways_on.h"

namespace cleave::solve::optimal {

class SignaturesInOrder {
 public:
  struct Limits {
    PathCost path;          ///< fixed steps included; the time is ignored if all paths fit the bytes
    std::int64_t peak = 0;  ///< transitions with at least this many transientBytes are excluded
  };
  SignaturesInOrder(const Elimination& elimination, const Signatures& signatures, const Limits& limits,
                    const Progress& progress);

  enum class State { Found, Exhausted, OutOfRoom, Stopped };
  State next();
  const Signature& signature() const { return m_walks.back(); }
  /// Lower bound of the time of every later signature, fixed steps included; kUnreachable if there are no more.
  Wide lowerBoundFs() const;
  /// True if the time limit excluded no path within the byte limit.
  bool hasAllPaths() const { return !m_isCut; }

 private:
  /// A way to a state.
  struct Reached {
    std::uint32_t state = 0;
    PathCost spent;
  };
  /// Signatures in the heap: those with the first `length` labels of `walk`, then `label`.
  struct Waiting {
    Wide bound = 0;
    std::uint64_t number = 0;
    std::uint32_t walk = 0, length = 0;
    std::optional<std::uint32_t> label;  ///< nullopt: any label
  };
  static bool isWorse(const Waiting& a, const Waiting& b);
  void pushToHeap(const Waiting& waiting);
  std::optional<Wide> boundOf(std::size_t place, std::uint32_t state, const PathCost& spent) const;
  /// Calls `visit(transition, spent)` for transitions from which a path within the limits leads to the end.
  template <class Visit>
  void forEachWayOn(std::size_t place, const std::vector<Reached>& reached, Visit visit) const;
  /// The states reached after a place by transitions of `label`, or of any label if it is nullopt.
  std::vector<Reached> reachedAfter(std::size_t place, const std::vector<Reached>& reached,
                                    std::optional<std::uint32_t> label);
  /// The best label at a place; nullopt if an entry of the heap is better. Pushes all other labels to the heap.
  std::optional<std::uint32_t> labelAt(std::size_t place, const std::vector<Reached>& reached, std::uint32_t length);
  /// Follows `start` as long as no entry of the heap is better; true at the end.
  bool follow(const Waiting& start);

  const Elimination& m_elimination;
  const Signatures& m_signatures;
  const Progress& m_progress;
  PathCost m_limits;  ///< without fixed steps
  bool m_isCut = false;
  Restriction m_restriction;  ///< to transitions that need less than the peak limit
  std::optional<WaysOn> m_ways;
  Wide m_least = kUnreachable;  ///< lower bound of all paths within the byte limit; kUnreachable without such paths
  std::vector<Waiting> m_heap;
  std::vector<Signature> m_walks;                ///< complete signatures and prefixes
  std::vector<std::vector<PathCost>> m_byState;  ///< buffer of `reachedAfter`
  std::size_t m_walked = 0;
  std::uint64_t m_number = 0;
  Wide m_forgotten = kUnreachable;  ///< lower bound of signatures dropped for lack of memory
};

}  // namespace cleave::solve::optimal
