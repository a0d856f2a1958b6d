#pragma once
/// Finds out if some nodes of a problem can hold together while the others are relaxed. A deletion filter over nodes
/// uses it.
///
/// A relaxed node may place its results in any way that Domains::widened allows, which includes every placement of a
/// plan. A set of nodes that fails here has no solution. Sources (inputs, constants, parameters that no layer owns) and
/// pinned nodes are always kept. The answer is exact over the domains: a sweep (candidates/sweep.h) visits the kept
/// nodes without weights. Levels are cached between calls, so equal blocks share them whatever is relaxed elsewhere.
/// Use it from one thread.
#include "solve/candidates/domains.h"
#include "solve/candidates/level_store.h"

#include <functional>

namespace cleave::solve {

/// Placements of one node's operands and results in an assignment that every kept node allows.
struct Witness {
  std::vector<Placement> reads, writes;  ///< in the order of Variables::reads and writes
};

/// Filters on the choices of kept nodes and on the placements of free values.
struct Narrowing {
  std::function<bool(NodeId, const Choice&)> allowsChoice;
  std::function<bool(const Placement&)> allowsPlacement;  ///< for a value that no kept node places
};

class Relaxation {
 public:
  /// All arguments must outlive this object.
  Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work);

  /// `kept`: by NodeId. Unknown: too many states, an incomplete domain, or the work limit was reached.
  Answer check(const std::vector<bool>& kept);
  /// The same with fewer choices.
  Answer check(const std::vector<bool>& kept, const Narrowing& narrowing);
  /// Placements at the relaxed node `observed` in an assignment of the kept nodes; nullopt if none exists or it is not
  /// known.
  std::optional<Witness> witness(const std::vector<bool>& kept, NodeId observed);

  /// True for nodes that cannot be relaxed.
  bool isBackground(NodeId node) const { return m_isBackground[node.index()]; }

 private:
  struct Level {
    std::shared_ptr<const StateSet> exit;
    std::vector<std::uint32_t> from;  ///< by exit state: the first entry state that leads to it
    std::uint64_t memoryBytes() const { return sizeof(Level) + from.size() * sizeof(std::uint32_t); }
  };
  class KeptNode;
  class NarrowedNode;
  class ObservedNode;
  class Sweep;

  /// Possible placements of a value that no node has placed yet; equal domains have equal numbers.
  struct Domain {
    std::span<const PlacementId> choices;
    std::uint32_t number = 0;
  };
  const Domain& domainOf(ValueId value);
  std::uint32_t classOf(NodeId node);
  /// Counts one placement of a node's operands, or one cached level; true when the work limit is reached.
  bool spend();

  const ProblemRef m_ref;
  const Variables& m_variables;
  const Graph& m_graph;
  Domains& m_domains;
  CandidateTable& m_table;
  Work& m_work;
  std::vector<bool> m_isBackground;                     ///< by NodeId
  std::vector<std::optional<std::uint32_t>> m_classOf;  ///< by NodeId: CandidateTable::classOf
  std::vector<std::optional<Domain>> m_domainOf;        ///< by ValueId
  IdTupleMap<std::uint32_t> m_domainNumbers;
  LevelStore<Level> m_levels;
  std::uint64_t m_spent = 0;  ///< total work; Work::spend gets it in multiples of the polling interval
};

}  // namespace cleave::solve
