#pragma once
/// All signatures that have a path within a limit of time and one of bytes, by the time of their fastest such path, one
/// after the other.
///
/// Best first over the labels of the places in their order. What a beginning of a signature reaches is a set of states,
/// each with the ways there that no other beats: the elimination made deterministic on the way, as far as it is asked
/// for (Mohri and Riley, "An Efficient Algorithm for the n-Best-Strings Problem", 2002). The bounds are exact
/// (ways_on.h), so that each signature takes two passes over the places.
#include "solve/optimal/signatures.h"
#include "solve/optimal/ways_on.h"

namespace cleave::solve::optimal {

class SignaturesInOrder {
 public:
  struct Limits {
    PathCost path;          ///< fixed steps counted; the time has no say where the bytes leave all paths
    std::int64_t peak = 0;  ///< transitions whose transientBytes are as much are left out
  };
  SignaturesInOrder(const Elimination& elimination, const Signatures& signatures, const Limits& limits,
                    const Progress& progress);

  enum class State { Found, Exhausted, OutOfRoom, Stopped };
  State next();
  const Signature& signature() const { return m_walks.back(); }
  /// No path of a signature still to come is faster; fixed steps counted. kUnreachable: none is to come.
  Wide lowerBoundFs() const;
  /// No path within the bytes was left out for its time.
  bool isWhole() const { return !m_isCut; }

 private:
  /// A way to a state.
  struct Reached {
    std::uint32_t state = 0;
    PathCost spent;
  };
  /// Signatures left aside: those that begin as `walk` up to its `length`, and then have `label`.
  struct Waiting {
    Wide bound = 0;
    std::uint64_t number = 0;
    std::uint32_t walk = 0, length = 0;
    std::optional<std::uint32_t> label;  ///< nullopt: any
  };
  static bool isWorse(const Waiting& a, const Waiting& b);
  void setAside(const Waiting& waiting);
  std::optional<Wide> boundOf(std::size_t place, std::uint32_t state, const PathCost& spent) const;
  /// Calls `visit(transition, spent)` with what leads on within the limits.
  template <class Visit>
  void forEachWayOn(std::size_t place, const std::vector<Reached>& reached, Visit visit) const;
  /// What is reached behind a place by transitions of a label, where one is given.
  std::vector<Reached> behind(std::size_t place, const std::vector<Reached>& reached,
                              std::optional<std::uint32_t> label);
  /// The best label at a place; the others, and it too where something that waits is better, are set aside.
  std::optional<std::uint32_t> labelAt(std::size_t place, const std::vector<Reached>& reached, std::uint32_t length);
  /// Follows `start` as long as nothing that waits is better; true when it came to the end.
  bool follow(const Waiting& start);

  const Elimination& m_elimination;
  const Signatures& m_signatures;
  const Progress& m_progress;
  PathCost m_limits;  ///< of places alone
  bool m_isCut = false;
  Restriction m_restriction;  ///< to what needs less than the limit of the peak
  std::optional<WaysOn> m_ways;
  Wide m_least = kUnreachable;  ///< a lower bound of all paths within the bytes; kUnreachable: there are none
  std::vector<Waiting> m_heap;
  std::vector<Signature> m_walks;                ///< whole ones and beginnings
  std::vector<std::vector<PathCost>> m_byState;  ///< of `behind`
  std::size_t m_walked = 0;
  std::uint64_t m_number = 0;
  Wide m_forgotten = kUnreachable;  ///< no signature that was left out for want of room has a lower bound
};

}  // namespace cleave::solve::optimal
