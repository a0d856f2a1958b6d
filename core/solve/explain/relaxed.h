#pragma once
/// Whether some of a problem's nodes can hold together while the others are let go: what a deletion filter over nodes
/// asks.
///
/// A node that is let go (relaxed) may place its results in any way: as Domains::widened says, which leaves nothing out
/// that a plan could have. So what fails here has no solution. Sources (inputs, constants, parameters that no layer
/// owns) and nodes that a pin speaks of are always kept. Exact over the domains: a sweep (candidates/sweep.h) over the
/// kept nodes, without a weight. Its levels are kept between questions, so that of equal blocks each distinct level is
/// made once, whatever is let go before and behind it. One thread.
#include "solve/candidates/domains.h"
#include "solve/candidates/level_store.h"

#include <functional>

namespace cleave::solve {

/// How the operands and results of one node are placed in an assignment that every kept node agrees with.
struct Witness {
  std::vector<Placement> reads, writes;  ///< in the order of Variables::reads and writes
};

/// What may be left out of what kept nodes could take and of how free values may lie; each is asked of everything.
struct Narrowing {
  std::function<bool(NodeId, const Choice&)> mayTake;
  std::function<bool(const Placement&)> mayLie;  ///< a value that no kept node places
};

class Relaxation {
 public:
  /// All must outlive this.
  Relaxation(const Problem& problem, const Variables& variables, Domains& domains, Work& work);

  /// `kept`: by NodeId. Unknown: too many states, a domain that is not known, or the work ended.
  Answer check(const std::vector<bool>& kept);
  /// The same with less to choose from.
  Answer check(const std::vector<bool>& kept, const Narrowing& narrowing);
  /// An assignment of the kept nodes as `observed`, a node that is let go, sees it; nullopt when there is none or it is
  /// not known.
  std::optional<Witness> witness(const std::vector<bool>& kept, NodeId observed);

  /// True for nodes that cannot be let go.
  bool isBackground(NodeId node) const { return m_isBackground[node.index()]; }

 private:
  struct Level {
    std::shared_ptr<const StateSet> exit;
    std::vector<std::uint32_t> from;  ///< by state behind: the first state before that leads to it
    std::uint64_t memoryBytes() const { return sizeof(Level) + from.size() * sizeof(std::uint32_t); }
  };
  class Taken;  // the weight of a kept node
  class Narrowed;
  class Seen;  // the weight of the observed node
  class Sweep;

  /// What a value may be that nobody has placed; `number` is equal for equal domains.
  struct Domain {
    std::span<const PlacementId> choices;
    std::uint32_t number = 0;
  };
  const Domain& domainOf(ValueId value);
  std::uint32_t classOf(NodeId node);
  /// Counts one way to place what a node reads, or a level that is known; true when the work is over.
  bool spend();

  const Asking m_asking;
  const Variables& m_variables;
  const Graph& m_graph;
  Domains& m_domains;
  CandidateTable& m_table;
  Work& m_work;
  std::vector<bool> m_isBackground;                     ///< by NodeId
  std::vector<std::optional<std::uint32_t>> m_classOf;  ///< by NodeId: CandidateTable::classOf
  std::vector<std::optional<Domain>> m_domainOf;        ///< by ValueId
  WordsMap<std::uint32_t> m_domainNumbers;
  LevelStore<Level> m_levels;
  std::uint64_t m_spent = 0;  ///< of which Work::spend knows all but the rest of a poll's
};

}  // namespace cleave::solve
